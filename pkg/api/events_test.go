// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// streamed is an event of a stream, or a line without one if it has no name.
type streamed struct {
	id, name string
	data     json.RawMessage
}

// stream is an open stream of a caller. events is closed at its end.
type stream struct {
	t      testing.TB
	events chan streamed
	close  context.CancelFunc
	last   string // the id of the last event
}

const patience = 20 * time.Second // for what comes at once

// follow opens a stream that resumes after last, and reads its beginning.
func (p caller) follow(t testing.TB, last string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.cloud.url+"/v1/events", nil)
	must(t, err)
	request.Header.Set("X-Auth-Token", p.token)
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the stream is answered with %d %v", response.StatusCode, response.Header)
	}
	s := &stream{t: t, events: make(chan streamed), close: cancel, last: last}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer response.Body.Close()
		defer close(s.events)
		readEvents(response, func(e streamed) bool {
			select {
			case s.events <- e:
				return true
			case <-ctx.Done():
				return false
			}
		})
	})
	t.Cleanup(func() { cancel(); reading.Wait() })
	if begin := s.next(); last == "" && (begin.name != "" || begin.id == "") {
		t.Fatalf("the stream begins with %+v", begin)
	} else if begin.name != "" {
		t.Fatalf("the stream resumes with %+v", begin)
	}
	return s
}

// readEvents calls use with each block of the stream until it returns false.
func readEvents(response *http.Response, use func(streamed) bool) {
	var e streamed
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = json.RawMessage(value)
		case "":
			if !use(e) {
				return
			}
			e = streamed{}
		}
	}
}

// next returns the next block; an empty one after the end.
func (s *stream) next() streamed {
	s.t.Helper()
	select {
	case e := <-s.events:
		if e.id != "" {
			s.last = e.id
		}
		return e
	case <-time.After(patience):
		s.t.Fatal("nothing comes")
		return streamed{}
	}
}

// eventOf returns the data of the next event, which must have this name.
func eventOf[T any](s *stream, name string) (data T) {
	s.t.Helper()
	e := s.next()
	for e.name == "" && e.id != "" {
		e = s.next()
	}
	if e.name != name {
		s.t.Fatalf("want an event %s, got %+v", name, e)
	}
	must(s.t, json.Unmarshal(e.data, &data))
	return data
}

// lasting lets streams last.
func lasting(o *api.Options) { o.Streams.Longest = time.Hour }

func TestAStreamTellsWhatTheCallerMaySee(t *testing.T) {
	c := start(t, setup{adjust: lasting})
	ours, theirs, admins := c.demo.follow(t, ""), c.other.follow(t, ""), caller{c, "other/admin"}.follow(t, "")
	r := c.demo.bookAt("ours", 60)
	span := func(change string) v1.CalendarEvent {
		return v1.CalendarEvent{Change: change, Start: noon.Add(60).Time(), End: noon.Add(120).Time(), Hosts: []string{"A"}}
	}
	full := func(change, status string, mine bool) v1.CalendarEvent {
		e := span(change)
		e.Mine, e.ReservationID, e.Name, e.ProjectID, e.Status = mine, r.ID, "ours", "demo", status
		return e
	}
	hidden := full("created", "pending", true)
	hidden.Hosts = []string{} // they may still change
	for _, test := range []struct {
		stream *stream
		want   v1.CalendarEvent
	}{{ours, hidden}, {theirs, span("changed")}, {admins, full("created", "pending", false)}} {
		if diff := cmp.Diff(test.want, eventOf[v1.CalendarEvent](test.stream, "calendar")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	c.wait(60) // it starts, which others do not see
	if diff := cmp.Diff(full("changed", "active", true), eventOf[v1.CalendarEvent](ours, "calendar")); diff != "" {
		t.Errorf("the start (-want +got):\n%s", diff)
	}
	c.wait(60)
	eventOf[v1.CalendarEvent](ours, "calendar") // the warning of the end
	if diff := cmp.Diff(full("over", "ended", true), eventOf[v1.CalendarEvent](ours, "calendar")); diff != "" {
		t.Errorf("the end (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(span("changed"), eventOf[v1.CalendarEvent](theirs, "calendar")); diff != "" {
		t.Errorf("another project's end (-want +got):\n%s", diff)
	}
}

func TestAStreamResumesWhereItEnded(t *testing.T) {
	c := start(t, setup{adjust: lasting})
	s := c.demo.follow(t, "")
	c.demo.bookAt("first", 60)
	eventOf[v1.CalendarEvent](s, "calendar")
	s.close()
	second, third := c.demo.bookAt("second", 120), c.demo.bookAt("third", 180)
	again := c.demo.follow(t, s.last)
	for _, r := range []v1.Reservation{second, third} {
		if e := eventOf[v1.CalendarEvent](again, "calendar"); e.ReservationID != r.ID {
			t.Errorf("want the booking of %s, got %+v", r.Name, e)
		}
	}
}

func TestAStreamResumesAtAnotherReplica(t *testing.T) {
	first := start(t, setup{adjust: func(o *api.Options) { lasting(o); o.Replica = "first" }})
	second := start(t, setup{file: first.file, adjust: func(o *api.Options) { lasting(o); o.Replica = "second" }})
	for _, c := range []*cloud{first, second} {
		c.seconds.Add(60) // it has run for longer than clocks differ
		must(t, c.bookings.Follow(t.Context()))
	}
	s := first.demo.follow(t, "")
	before := first.demo.bookAt("before", 3600)
	eventOf[v1.CalendarEvent](s, "calendar")
	s.close()
	missed := first.demo.bookAt("missed", 3600)
	must(t, second.bookings.Follow(t.Context()))
	again := second.demo.follow(t, s.last)
	seen := map[string]bool{}
	for range 2 {
		seen[eventOf[v1.CalendarEvent](again, "calendar").ReservationID] = true
	}
	if !seen[missed.ID] || !seen[before.ID] { // the first may come twice
		t.Errorf("the stream tells of %v", seen)
	}
	later := first.other.bookAt("later", 7200)
	must(t, second.bookings.Follow(t.Context()))
	if e := eventOf[v1.CalendarEvent](again, "calendar"); e.Start != later.Start || e.ReservationID != "" {
		t.Errorf("another project's booking at another replica is %+v", e)
	}
}

func TestAStreamThatCannotResumeIsReset(t *testing.T) {
	c := start(t, setup{adjust: lasting})
	for _, last := range []string{"nonsense", "other.0.5", "a.1.b"} {
		request := func() streamed {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/v1/events", nil)
			must(t, err)
			r.Header.Set("X-Auth-Token", "demo/member")
			r.Header.Set("Last-Event-ID", last)
			response, err := http.DefaultClient.Do(r)
			must(t, err)
			defer response.Body.Close()
			var first streamed
			readEvents(response, func(e streamed) bool { first = e; return false })
			return first
		}
		if e := request(); e.name != "reset" || e.id == "" {
			t.Errorf("after %q comes %+v", last, e)
		}
	}
}

func TestAStreamTellsWhichHostsHaveChanged(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) {
		lasting(o)
		o.Policy = rules(t, `"hosts:list": "role:admin or role:member"`)
	}})
	s, blind := c.demo.follow(t, ""), c.reader.follow(t, "")
	want[v1.Host](t, c.admin.patch("/v1/hosts/B", `{"power": "failed"}`), http.StatusOK)
	want[v1.Host](t, c.admin.patch("/v1/hosts/C", `{"reservable": false}`), http.StatusOK)
	must(t, c.handler.Publish(t.Context()))
	must(t, c.handler.Publish(t.Context())) // nothing is new
	c.demo.bookAt("r", 60)
	if e := eventOf[v1.HostsEvent](s, "hosts"); !slices.Equal(e.Hosts, []string{"B", "C"}) {
		t.Errorf("got %v", e)
	}
	for _, s := range []*stream{s, blind} {
		eventOf[v1.CalendarEvent](s, "calendar")
	}
}

func TestStreamsAreBounded(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) {
		lasting(o)
		o.Streams.Most, o.Streams.MostPerProject = 3, 2
	}})
	first := c.demo.follow(t, "")
	c.demo.follow(t, "")
	if a := c.demo.get("/v1/events"); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Errorf("the third stream of a project is answered with %v", a)
	}
	c.other.follow(t, "")
	if a := c.other.get("/v1/events"); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("the fourth stream is answered with %v", a)
	}
	if got := c.metric("almanac_event_streams"); got != "3" {
		t.Errorf("the metric counts %s streams", got)
	}
	first.close()
	for c.metric("almanac_event_streams") != "2" {
		if t.Context().Err() != nil {
			t.Fatal("a stream whose client has gone stays")
		}
	}
	c.other.follow(t, "")
}

// metric returns the present value of a metric without labels.
func (c *cloud) metric(name string) string {
	c.passed.Add(1) // an answer is reused for a second
	for line := range strings.Lines(string(c.nobody.get("/metrics").body)) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func TestAStopEndsStreams(t *testing.T) {
	c := start(t, setup{adjust: lasting})
	s := c.demo.follow(t, "")
	c.handler.Drain()
	if e := s.next(); e.name != "" || e.id != "" {
		t.Errorf("after the end comes %+v", e)
	}
	if a := c.demo.get("/v1/events"); a.status != http.StatusServiceUnavailable {
		t.Errorf("a new stream is answered with %v", a)
	}
}

// Neither the time limit of requests nor the server's own cuts a stream, and a long one does not count
// as a slow request.
func TestAStreamOutlastsTheLimitsOfRequests(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) {
		lasting(o)
		o.RequestTimeout, o.RequestsAtOnce, o.Streams.Heartbeat = time.Millisecond, 1, 10*time.Millisecond
	}})
	server := httptest.NewUnstartedServer(c.handler)
	server.Config.ReadTimeout = 50 * time.Millisecond
	server.Start()
	t.Cleanup(server.Close)
	c.url = server.URL
	s := c.demo.follow(t, "")
	for range 20 { // lasts four times as long as the server's limit
		if e := s.next(); e.name != "" || e.id == "" {
			t.Fatalf("want a line without an event, got %+v", e)
		}
	}
	if text := string(c.nobody.get("/metrics").body); strings.Contains(text, `almanac_http_request_duration_seconds_count{method="GET",route="/v1/events"}`) {
		t.Error("a stream counts as a request that took long")
	}
}

// pipes is a listener for connections in memory, whose writes wait for a reader.
type pipes struct {
	connections chan net.Conn
	closed      context.Context
	close       context.CancelFunc
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.closed.Done():
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	p.close()
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

func TestAStreamWhoseClientDoesNotReadIsDropped(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { lasting(o); o.Streams.WriteTimeout = 10 * time.Millisecond }})
	listener := pipes{connections: make(chan net.Conn)}
	listener.closed, listener.close = context.WithCancel(t.Context())
	server := &http.Server{Handler: c.handler}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	client, served := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	listener.connections <- served
	_, err := fmt.Fprintf(client, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: demo/member\r\n\r\n")
	must(t, err)
	for c.metric("almanac_event_streams_dropped_total") != "1" || c.metric("almanac_event_streams") != "0" {
		if t.Context().Err() != nil {
			t.Fatal("the stream stays")
		}
	}
}

// The streams of a project never wait for each other, whatever the number of events and hosts.
func TestManyStreamsGetEachChange(t *testing.T) {
	const streams = 50
	hosts := make([]inventory.Host, 200)
	for i := range hosts {
		hosts[i] = machine(fmt.Sprintf("host-%03d", i))
	}
	c := start(t, setup{hosts: hosts, adjust: lasting})
	all := make([]*stream, streams)
	for i := range all {
		all[i] = c.other.follow(t, "")
	}
	c.demo.book(fmt.Sprintf(`{"name": "all", "quantity": 200, "start_time": %q, "duration": 60}`, at(60)))
	for _, s := range all {
		if e := eventOf[v1.CalendarEvent](s, "calendar"); len(e.Hosts) != len(hosts) {
			t.Fatalf("it names %d hosts", len(e.Hosts))
		}
	}
}
