// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// eventsPath is the path of the stream of events.
const eventsPath = "/v1/events"

// Streams bound the streams of GET /v1/events.
type Streams struct {
	// Most is how many there may be at once, 0 means 2000; MostPerProject is how many one project may
	// have, 0 means 200.
	Most, MostPerProject int
	// Heartbeat is the time between lines without an event; 0 means 15 seconds.
	Heartbeat time.Duration
	// Longest is how long a stream lasts; 0 means 15 minutes. Then its client resumes it, and its
	// token is checked again.
	Longest time.Duration
	// WriteTimeout is how long a write may take before its client is dropped; 0 means 10 seconds.
	WriteTimeout time.Duration
}

func (o Streams) withDefaults() Streams {
	set := func(to *time.Duration, usual time.Duration) {
		if *to == 0 {
			*to = usual
		}
	}
	set(&o.Heartbeat, 15*time.Second)
	set(&o.Longest, 15*time.Minute)
	set(&o.WriteTimeout, 10*time.Second)
	if o.Most == 0 {
		o.Most = 2000
	}
	if o.MostPerProject == 0 {
		o.MostPerProject = 200
	}
	return o
}

const (
	// eventBatch is the largest number of events that one write contains, and batchBytes the number of bytes after
	// which it contains no further event: a stream whose client does not read holds that much.
	eventBatch, batchBytes = 64, 32 << 10
	// mostChangedHosts is the largest number of hosts that one event of the kind hosts names.
	mostChangedHosts = 1000
	// resumeAfter is how many milliseconds a client waits before it resumes.
	resumeAfter = 2000
)

// streams are the open streams.
type streams struct {
	options Streams
	over    chan struct{} // is closed when the service stops
	once    sync.Once

	mu       sync.Mutex
	open     int
	projects map[string]int // open, by caller
}

func newStreams(o Streams) *streams {
	return &streams{options: o.withDefaults(), over: make(chan struct{}), projects: make(map[string]int)}
}

// end ends all streams and refuses new ones.
func (s *streams) end() { s.once.Do(func() { close(s.over) }) }

// enter counts a stream of a caller; it fails if there are too many.
func (s *streams) enter(caller string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open >= s.options.Most:
		return &fault.Error{
			Kind: fault.Unavailable, Message: fmt.Sprintf("this process serves %d event streams already; try again later", s.open), RetryAfter: overloaded,
		}
	case s.projects[caller] >= s.options.MostPerProject:
		return &fault.Error{
			Kind: fault.TooMany, RetryAfter: overloaded,
			Message: fmt.Sprintf("your project has %d event streams already; close some of them", s.projects[caller]),
		}
	}
	s.open++
	s.projects[caller]++
	return nil
}

func (s *streams) leave(caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.projects[caller]--; s.projects[caller] == 0 {
		delete(s.projects, caller)
	}
}

func (s *streams) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// learn adds a change of a reservation to the events. It implements booking.Listener.
func (s *server) learn(news booking.Learned) { s.events.add(eventOf(news), s.Now()) }

// Publish tells the streams which hosts have changed since the last call. It is a step of a job of
// the process, so that there is one comparison for all streams.
func (s *Server) Publish(context.Context) error {
	s.server.publishHosts()
	return nil
}

func (s *server) publishHosts() {
	s.hostNews.mu.Lock()
	defer s.hostNews.mu.Unlock()
	before, after := s.hostNews.told, s.Inventory.Snapshot()
	if before == after {
		return
	}
	s.hostNews.told = after
	if hosts := changedHosts(before, after); len(hosts) > 0 {
		if len(hosts) > mostChangedHosts {
			hosts = nil
		}
		s.events.add(event{hosts: hosts, followed: s.Booking.FollowedUntil()}, s.Now())
	}
}

// hostNews is the snapshot whose hosts the streams already know.
type hostNews struct {
	mu   sync.Mutex
	told *inventory.Snapshot
}

// changedHosts returns the hosts that differ between two snapshots, sorted.
func changedHosts(before, after *inventory.Snapshot) (changed []string) {
	i, j := 0, 0
	for i < before.Len() || j < after.Len() {
		switch {
		case j == after.Len() || i < before.Len() && before.Host(i).Name < after.Host(j).Name:
			changed = append(changed, before.Host(i).Name)
			i++
		case i == before.Len() || after.Host(j).Name < before.Host(i).Name:
			changed = append(changed, after.Host(j).Name)
			j++
		default:
			if !reflect.DeepEqual(before.Host(i), after.Host(j)) {
				changed = append(changed, after.Host(j).Name)
			}
			i, j = i+1, j+1
		}
	}
	return changed
}

// followEvents handles GET /v1/events.
func (s *server) followEvents(c *gin.Context) {
	if q := readQuery(c); q.err != nil {
		s.fail(c, q.err)
		return
	}
	by := asking(c)
	caller := callerOf(by)
	if s.draining.Load() {
		s.fail(c, &fault.Error{Kind: fault.Unavailable, Message: "this process stops; open the stream again", RetryAfter: time.Second})
		return
	}
	if err := s.streams.enter(caller); err != nil {
		s.fail(c, err)
		return
	}
	defer s.streams.leave(caller)
	c.Set(streamKey, true)
	c.Header("Content-Type", "text/event-stream")
	c.Header("X-Accel-Buffering", "no") // nginx would keep the events back
	c.Status(http.StatusOK)
	c.Writer.WriteHeaderNow()
	to := beneath(c.Writer)
	f := &follower{server: s, by: by, to: to, control: http.NewResponseController(to), seesHosts: by.may("hosts:list", by.ProjectID)}
	f.run(c.MustGet(clientKey).(context.Context), c.GetHeader("Last-Event-ID"))
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

// streamKey is set for requests that are answered with a stream.
const streamKey = "stream"

// follower is one stream.
type follower struct {
	server    *server
	by        *asker
	to        http.ResponseWriter
	control   *http.ResponseController
	seesHosts bool
	number    uint64 // the last event that the client has
	text      bytes.Buffer
}

// run serves the stream until ctx ends, the time is over, the service stops, or its client reads
// too slowly. The client resumes it after each of these, so none of them is an error.
func (f *follower) run(ctx context.Context, last string) {
	o := f.server.streams.options
	// The deadlines of the server are for requests; each write has its own.
	_ = f.control.SetReadDeadline(time.Time{})
	_ = f.control.SetWriteDeadline(time.Time{})
	f.begin(last)
	over := time.NewTimer(o.Longest)
	defer over.Stop()
	heartbeat := time.NewTicker(o.Heartbeat)
	defer heartbeat.Stop()
	for {
		events, missed, news := f.server.events.after(f.number, eventBatch)
		if missed {
			f.number = f.server.events.end()
			f.reset("this stream was too slow for the changes")
			continue
		}
		told := 0
		for ; told < len(events) && f.text.Len() < batchBytes; told++ {
			f.tell(&events[told])
		}
		if f.flush() != nil {
			f.server.metrics.slowStreams.Inc()
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
		case <-f.server.streams.over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// begin finds out where the stream begins, which is now or where an earlier one has ended.
func (f *follower) begin(last string) {
	log := f.server.events
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
	until := f.server.Booking.FollowedUntil()
	f.number = log.end()
	f.point(until)
	f.text.WriteString("\n")
}

// heartbeat moves the id on if the client has every event. Without data, it is no event.
func (f *follower) heartbeat() {
	until := f.server.Booking.FollowedUntil()
	if f.server.events.end() == f.number {
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
	mine := r.BelongsTo(f.by.ProjectID)
	sees := mine || f.by.may("reservations:get_all_projects", r.ProjectID)
	if !sees && !e.claims {
		return
	}
	data := v1.CalendarEvent{Change: changeChanged, Start: e.span.Start.Time(), End: e.span.End.Time(), Hosts: e.hosts, Mine: mine}
	if sees {
		data.Change, data.ReservationID, data.Name, data.ProjectID, data.Status = e.change, r.ID, r.Name, r.ProjectID, string(r.Status)
		if !seesHosts(r, f.by) {
			data.Hosts = nil
		}
	}
	data.Hosts = append([]string{}, data.Hosts...)
	f.point(e.followed)
	f.write("calendar", data)
}

// point writes the id of the present place.
func (f *follower) point(until span.Instant) {
	fmt.Fprintf(&f.text, "id: %v\n", eventID{f.server.events.process, until, f.number})
}

// reset writes that changes may be missing.
func (f *follower) reset(reason string) {
	f.point(f.server.Booking.FollowedUntil())
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
	late := time.AfterFunc(f.server.streams.options.WriteTimeout, func() { _ = f.control.SetWriteDeadline(past) })
	defer late.Stop()
	if _, err := f.to.Write(f.text.Bytes()); err != nil {
		return err
	}
	if f.text.Reset(); f.text.Cap() > 2*batchBytes {
		f.text = bytes.Buffer{} // one long event must not stay as long as the stream
	}
	return f.control.Flush()
}
