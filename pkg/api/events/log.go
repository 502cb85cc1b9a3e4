// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

const (
	// mostEvents and mostEventHosts bound the events that a process remembers for streams that
	// resume, and the hosts that they name.
	mostEvents, mostEventHosts = 4096, 200_000
	// overlap is how many seconds before its point a stream resumes at another replica: the clocks of
	// replicas differ, and a node of the database may show a commit a little later than another.
	overlap = 10
)

// event is a change that streams tell of, with all that any caller may see.
type event struct {
	number  uint64       // 1, 2, … in this process
	learned span.Instant // when this process learned of it
	// followed is an instant before which nothing was stored that this process learned of later.
	followed span.Instant

	// reservation contains the id, project, name and status: those after the change, or the last ones
	// of a reservation that is gone. It is nil for an event about facts of hosts.
	reservation *reservation.Reservation
	change      string    // of the reservation: created, changed or over
	span        span.Span // of the claims before and after
	hosts       []string  // sorted; of the claims before and after, or those whose facts have changed
	// claims is true if claims have changed; otherwise the event is for those who may see the
	// reservation.
	claims bool
}

// The changes of a reservation.
const (
	changeCreated = "created"
	changeChanged = "changed"
	changeOver    = "over"
)

// eventOf returns the event of a change of a reservation.
func eventOf(news booking.Learned) event {
	before, after := news.Before, news.After
	e := event{change: changeChanged, followed: news.Followed}
	switch {
	case before == nil:
		e.change, e.claims = changeCreated, after == nil || after.Status != reservation.Waiting
	case after == nil:
		e.claims = before.Status != reservation.Waiting
	default:
		e.claims = before.Kind != after.Kind || !slices.Equal(before.Claims, after.Claims) ||
			before.Status.Promised() != after.Status.Promised() || !before.Resources.Equal(after.Resources)
	}
	if after == nil || !after.Status.Live() {
		e.change = changeOver
	}
	for _, r := range []*reservation.Reservation{before, after} {
		if r == nil {
			continue
		}
		// The log keeps it long, and the rest of the terms may be large.
		e.reservation = &reservation.Reservation{ID: r.ID, ProjectID: r.ProjectID, Status: r.Status, Terms: reservation.Terms{Name: r.Name}}
		for _, c := range r.Claims {
			e.hosts = append(e.hosts, c.Host)
			e.span = union(e.span, c.Span)
		}
		e.span = union(e.span, r.Span)
	}
	slices.Sort(e.hosts)
	e.hosts = slices.Clip(slices.Compact(e.hosts))
	return e
}

// union returns the smallest span that contains both; an empty one counts for nothing.
func union(a, b span.Span) span.Span {
	switch {
	case a.Empty():
		return b
	case b.Empty():
		return a
	}
	return span.Span{Start: min(a.Start, b.Start), End: max(a.End, b.End)}
}

// eventLog stores the latest events of this process once for all its streams; a stream stores only
// the number of its last event. It is safe for concurrent use.
type eventLog struct {
	process string // identifies this run among all replicas

	most, mostHosts int

	mu     sync.Mutex
	events []event // the numbers follow each other
	hosts  int     // that the events name
	last   uint64  // the number of the last event
	// complete is the instant since which everything that this process learned is in events.
	complete span.Instant
	news     chan struct{} // is closed at the next event
}

// processID returns the name of a process in ids of events: short, and without the name of its
// machine.
func processID(replica string) string {
	sum := sha256.Sum256([]byte(replica))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// newEventLog returns an empty log of a process that learns everything from an instant on.
func newEventLog(process string, from span.Instant) *eventLog {
	return &eventLog{process: process, most: mostEvents, mostHosts: mostEventHosts, complete: from, news: make(chan struct{})}
}

// add adds an event that this process has learned of now.
func (l *eventLog) add(e event, now span.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	e.number, e.learned = l.last, now
	if n := len(l.events); n > 0 {
		e.learned = max(now, l.events[n-1].learned) // the clock may be set back, but resume searches by it
	}
	l.events, l.hosts = append(l.events, e), l.hosts+len(e.hosts)
	for len(l.events) > 1 && (len(l.events) > l.most || l.hosts > l.mostHosts) {
		l.complete = max(l.complete, l.events[0].learned+1)
		l.hosts -= len(l.events[0].hosts)
		l.events[0] = event{} // the array keeps nothing alive
		l.events = l.events[1:]
	}
	close(l.news)
	l.news = make(chan struct{})
}

// after returns at most most events after a number, and the channel that is closed when there are
// more. missed is true if some of them are no longer there.
func (l *eventLog) after(number uint64, most int) (list []event, missed bool, news <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.last + 1 - uint64(len(l.events))
	from := max(number+1, first)
	list = l.events[from-first:]
	return slices.Clone(list[:min(len(list), most)]), from > number+1, l.news
}

// end returns the number of the last event.
func (l *eventLog) end() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// eventID is how far a stream has told a client: the number of the last event in a process, and an
// instant before which everything that was stored has been told.
type eventID struct {
	process string
	until   span.Instant
	number  uint64
}

func (id eventID) String() string {
	return fmt.Sprintf("%s.%d.%d", id.process, int64(id.until), id.number)
}

// parseEventID returns the id of a text; ok is false if it is none.
func parseEventID(text string) (id eventID, ok bool) {
	process, rest, _ := strings.Cut(text, ".")
	until, number, _ := strings.Cut(rest, ".")
	instant, err := strconv.ParseInt(until, 10, 64)
	n, numberErr := strconv.ParseUint(number, 10, 64)
	return eventID{process, span.Instant(instant), n}, cmp.Or(err, numberErr) == nil && process != ""
}

// resume returns the number after which a stream goes on that has come to id, maybe at another
// replica. ok is false if events may be missing there.
func (l *eventLog) resume(id eventID) (number uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.last + 1 - uint64(len(l.events))
	if id.process == l.process {
		return min(id.number, l.last), id.number <= l.last && id.number+1 >= first
	}
	since := id.until - overlap
	at, _ := slices.BinarySearchFunc(l.events, since, func(e event, t span.Instant) int { return cmp.Compare(e.learned, t) })
	return first + uint64(at) - 1, since >= l.complete
}
