// SPDX-License-Identifier: Apache-2.0

package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	// eventBatch is the largest number of events that one write contains, and batchBytes the number of bytes after
	// which it contains no further event: a stream whose client does not read holds that much.
	eventBatch, batchBytes = 64, 32 << 10
	// resumeAfter is how many milliseconds a client waits before it resumes.
	resumeAfter = 2000
)

// follow handles GET /v1/events.
func (s *API) follow(c *serving.Call) {
	if q := c.Parameters(); q.Err != nil {
		c.Fail(q.Err)
		return
	}
	by := c.Asker()
	caller := by.Name()
	if s.streams.ended() {
		c.Fail(&fault.Error{Kind: fault.Unavailable, Message: "this process stops; open the stream again", RetryAfter: time.Second})
		return
	}
	if err := s.streams.enter(caller); err != nil {
		c.Fail(err)
		return
	}
	defer s.streams.leave(caller)
	c.Header("Content-Type", "text/event-stream")
	c.Header("X-Accel-Buffering", "no") // nginx would keep the events back
	c.Status(http.StatusOK)
	c.Writer.WriteHeaderNow()
	to := beneath(c.Writer)
	f := &follower{api: s, by: by, to: to, control: http.NewResponseController(to), seesHosts: by.May("hosts:list", by.ProjectID)}
	f.run(c.Client(), c.GetHeader("Last-Event-ID"))
}

// beneath returns the writer of net/http: gin's would not return the error of a flush.
func beneath(w http.ResponseWriter) http.ResponseWriter {
	for {
		wrapper, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return w
		}
		w = wrapper.Unwrap()
	}
}

// follower is one stream.
type follower struct {
	api       *API
	by        *serving.Asker
	to        http.ResponseWriter
	control   *http.ResponseController
	seesHosts bool
	number    uint64 // the last event that the client has
	text      bytes.Buffer
}

// run serves the stream until ctx ends, the time is over, the service stops, or its client reads
// too slowly. The client resumes it after each of these, so none of them is an error.
func (f *follower) run(ctx context.Context, last string) {
	o := f.api.streams.limits
	// The deadlines of the server are for requests; each write has its own.
	_ = f.control.SetReadDeadline(time.Time{})
	_ = f.control.SetWriteDeadline(time.Time{})
	f.begin(last)
	over := time.NewTimer(o.Longest)
	defer over.Stop()
	heartbeat := time.NewTicker(o.Heartbeat)
	defer heartbeat.Stop()
	for {
		events, missed, news := f.api.log.after(f.number, eventBatch)
		if missed {
			f.number = f.api.log.end()
			f.reset("this stream was too slow for the changes")
			continue
		}
		told := 0
		for ; told < len(events) && f.text.Len() < batchBytes; told++ {
			f.tell(&events[told])
		}
		if f.flush() != nil {
			f.api.slow.Inc()
			return
		}
		if told < len(events) || told == eventBatch {
			continue
		}
		select {
		case <-news:
		case <-heartbeat.C:
			f.heartbeat()
		case <-over.C:
			return
		case <-f.api.streams.over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// begin finds out where the stream begins, which is now or where an earlier one has ended.
func (f *follower) begin(last string) {
	log := f.api.log
	fmt.Fprintf(&f.text, "retry: %d\n", resumeAfter)
	if last != "" {
		id, known := parseEventID(last)
		from, whole := log.resume(id)
		if known && whole {
			f.number = from
			f.text.WriteString("\n")
			return
		}
		f.number = log.end()
		f.reset("this stream cannot be resumed here")
		return
	}
	until := f.api.Promises.FollowedUntil()
	f.number = log.end()
	f.point(until)
	f.text.WriteString("\n")
}

// heartbeat moves the id on if the client has every event. Without data, it is no event.
func (f *follower) heartbeat() {
	until := f.api.Promises.FollowedUntil()
	if f.api.log.end() == f.number {
		f.point(until)
	}
	f.text.WriteString("\n")
}

// tell writes an event as the caller may see it, if at all.
func (f *follower) tell(e *event) {
	f.number = e.number
	r := e.reservation
	if r == nil {
		if f.seesHosts {
			f.point(e.followed)
			f.write("hosts", v1.HostsEvent{Hosts: append([]string{}, e.hosts...)})
		}
		return
	}
	mine, sees := r.BelongsTo(f.by.ProjectID), f.by.Sees(r)
	if !sees && !e.claims {
		return
	}
	data := v1.CalendarEvent{Change: changeChanged, Start: e.span.Start.Time(), End: e.span.End.Time(), Hosts: e.hosts, Mine: mine}
	if sees {
		data.Change, data.ReservationID, data.Name, data.ProjectID, data.Status = e.change, r.ID, r.Name, r.ProjectID, string(r.Status)
		if !f.by.SeesHosts(r) {
			data.Hosts = nil
		}
	}
	data.Hosts = append([]string{}, data.Hosts...)
	f.point(e.followed)
	f.write("calendar", data)
}

// point writes the id of the present place.
func (f *follower) point(until span.Instant) {
	fmt.Fprintf(&f.text, "id: %v\n", eventID{f.api.log.process, until, f.number})
}

// reset writes that changes may be missing.
func (f *follower) reset(reason string) {
	f.point(f.api.Promises.FollowedUntil())
	f.write("reset", v1.ResetEvent{Reason: reason})
}

func (f *follower) write(name string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Sprintf("api: an event cannot be written: %v", err)) // it has texts, times and truths
	}
	fmt.Fprintf(&f.text, "event: %s\ndata: %s\n\n", name, raw)
}

// flush sends what was written.
func (f *follower) flush() error {
	if f.text.Len() == 0 {
		return nil
	}
	late := time.AfterFunc(f.api.streams.limits.WriteTimeout, func() { _ = f.control.SetWriteDeadline(serving.Past) })
	defer late.Stop()
	if _, err := f.to.Write(f.text.Bytes()); err != nil {
		return err
	}
	if f.text.Reset(); f.text.Cap() > 2*batchBytes {
		f.text = bytes.Buffer{} // one long event must not stay as long as the stream
	}
	return f.control.Flush()
}
