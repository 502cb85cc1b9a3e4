// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// CalendarQuery selects a part of the calendar. A zero time is Almanac's default, a zero field of the
// others selects everything.
type CalendarQuery struct {
	Start, End time.Time
	Hosts      []string
	Filter     string // JSON
	Facts      bool   // with facts about each host
	PageSize   int    // 0 is Almanac's default
}

// Calendar returns the claims on the selected hosts. It reads all pages and returns them as one.
func (c *Client) Calendar(ctx context.Context, q CalendarQuery) (whole v1.Calendar, err error) {
	query := url.Values{}
	setTime(query, "start", q.Start)
	setTime(query, "end", q.End)
	set(query, "filter", q.Filter)
	setFlag(query, "facts", q.Facts)
	if len(q.Hosts) > 0 {
		query["host"] = q.Hosts
	}
	setNumber(query, "limit", q.PageSize)
	for {
		page, err := answer[v1.Calendar](ctx, c, call{method: http.MethodGet, path: "/v1/calendar", query: query})
		if err != nil {
			return whole, err
		}
		page.Hosts = append(whole.Hosts, page.Hosts...)
		whole = page
		if page.Next == "" {
			return whole, nil
		}
		if string(page.Next) == query.Get("marker") {
			return whole, fmt.Errorf("the page after %s begins with itself", page.Next)
		}
		query.Set("marker", string(page.Next))
		// The next pages are about the same time, even if it is the default.
		setTime(query, "start", page.Start)
		setTime(query, "end", page.End)
	}
}

// Limits returns the limits of a project and what it uses of them. An empty project is the caller's.
func (c *Client) Limits(ctx context.Context, project string) (v1.Limits, error) {
	query := url.Values{}
	set(query, "project_id", project)
	return answer[v1.Limits](ctx, c, call{method: http.MethodGet, path: "/v1/limits", query: query})
}

// UsageQuery selects host-hours. A zero time is Almanac's default.
type UsageQuery struct {
	Start, End time.Time
	By         string // project or host; empty is Almanac's default
	ProjectID  string // empty selects all that the caller may see
}

// Usage returns host-hours by project or by host.
func (c *Client) Usage(ctx context.Context, q UsageQuery) (v1.Usage, error) {
	query := url.Values{}
	setTime(query, "start", q.Start)
	setTime(query, "end", q.End)
	set(query, "by", q.By)
	set(query, "project_id", q.ProjectID)
	return answer[v1.Usage](ctx, c, call{method: http.MethodGet, path: "/v1/usage", query: query})
}

// Event is an event of a stream. Data is a v1.CalendarEvent, a v1.HostsEvent or a v1.ResetEvent as
// JSON, depending on Name: calendar, hosts or reset.
type Event struct {
	ID   string          `json:"id"`
	Name string          `json:"event"`
	Data json.RawMessage `json:"data"`
}

// resumeAfter is how long the client waits before it resumes a stream that has ended.
const resumeAfter = 2 * time.Second

// Events iterates over what changes on the calendar from now on, or after the event whose id is last,
// unless that is empty. When a stream ends, it resumes it; when that fails repeatedly, it ends with
// an error, as it does when ctx ends.
func (c *Client) Events(ctx context.Context, last string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		goesOn, failures := true, 0
		for {
			err := c.stream(ctx, last, func(e Event) bool {
				if failures = 0; e.ID != "" {
					last = e.ID
				}
				goesOn = e.Name == "" || yield(e, nil)
				return goesOn
			})
			switch {
			case !goesOn:
				return
			case ctx.Err() != nil:
				err = ctx.Err()
			case err != nil:
				var again bool
				if _, again = (call{method: http.MethodGet}).pause(err, failures); again {
					err = nil
				}
				failures++
			}
			if err == nil {
				err = c.options.Wait(ctx, resumeAfter)
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// stream opens a stream and calls use with each event until use returns false, and with an event
// without a name for each line that only moves the id on. It returns nil when the stream ends.
func (c *Client) stream(ctx context.Context, last string, use func(Event) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := c.request(ctx, call{method: http.MethodGet, path: "/v1/events"}, nil, "")
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	streaming := *c.options.HTTPClient
	streaming.Timeout = 0 // it is for answers that end
	answer, err := streaming.Do(req)
	if err != nil {
		return c.unanswered(ctx, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 400 {
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return c.unanswered(ctx, err)
		}
		return failure(c.base, answer, text)
	}
	if kind := answer.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return &Error{
			Status: answer.StatusCode, Kind: fault.Unavailable, RequestID: answer.Header.Get(requestIDHeader),
			Message: fmt.Sprintf("%s answered GET /v1/events with %q, which is no stream of events", c.base, kind),
		}
	}
	err = readEvents(answer.Body, use)
	if err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return nil // the connection is lost; the next stream resumes
	}
	return err
}

// longestEvent is the largest number of bytes of a line of a stream.
const longestEvent = 4 << 20

// readEvents calls use with each event until it returns false.
func readEvents(from io.Reader, use func(Event) bool) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, longestEvent)
	var e Event
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			if !use(e) {
				return nil
			}
			e = Event{}
		case name == "id":
			e.ID = value
		case name == "event":
			e.Name = value
		case name == "data":
			e.Data = json.RawMessage(value)
		}
	}
	return lines.Err()
}
