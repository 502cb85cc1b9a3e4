// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// The oracle keeps every event.
func TestAStreamGetsEachEventOnceOrLearnsThatItMissedSome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := newEventLog("here", 0)
		log.most, log.mostHosts = rapid.IntRange(1, 8).Draw(t, "most"), rapid.IntRange(1, 12).Draw(t, "hosts")
		var all [][]string
		place := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				hosts := make([]string, rapid.IntRange(0, 3).Draw(t, "hosts"))
				all = append(all, hosts)
				log.add(event{hosts: hosts}, span.Instant(len(all)))
			},
			"read": func(t *rapid.T) {
				list, missed, news := log.after(place, rapid.IntRange(1, 4).Draw(t, "at once"))
				if missed {
					if kept := len(log.events); len(all)-int(place) <= kept || kept < log.most && log.hosts+3 <= log.mostHosts {
						t.Fatalf("at %d of %d the stream has missed something, but %d are kept", place, len(all), kept)
					}
					place = log.end()
					return
				}
				for _, e := range list {
					if place++; e.number != place || len(e.hosts) != len(all[place-1]) {
						t.Fatalf("after %d comes %d", place-1, e.number)
					}
				}
				select {
				case <-news:
					t.Fatal("the stream is told of news that there are not yet")
				default:
				}
				if len(list) == 0 && int(place) != len(all) {
					t.Fatalf("nothing comes after %d of %d", place, len(all))
				}
			},
			"resume": func(t *rapid.T) {
				number, whole := log.resume(eventID{"here", 0, place})
				if kept := log.last - uint64(len(log.events)); whole != (place >= kept) || whole && number != place {
					t.Fatalf("at %d, with the events from %d on, the stream resumes after %d: %v", place, kept+1, number, whole)
				}
			},
		})
	})
}

// Two replicas learn of the same commits, each some seconds later. A client that has read some of the
// events of one and resumes at the other misses none.
func TestAStreamThatResumesAtAnotherReplicaMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const end = 200
		stored := rapid.SliceOfN(rapid.IntRange(20, end), 0, 30).Draw(t, "stored")
		slices.Sort(stored)
		from := newEventLog("from", 0)
		polls := rapid.SliceOfN(rapid.IntRange(1, 40), 1, 30).Draw(t, "intervals")
		type known struct{ commit, number int }
		var told []known
		followed, next := 0, 0
		for at := 0; at < end && len(polls) > 0; polls = polls[1:] {
			at += polls[0]
			for ; next < len(stored) && stored[next] < at; next++ {
				from.add(event{followed: span.Instant(followed)}, span.Instant(at))
				told = append(told, known{next, len(told) + 1})
			}
			followed = at
		}
		read := rapid.IntRange(0, len(told)).Draw(t, "read")
		id := eventID{"from", span.Instant(followed), uint64(len(told))} // of a heartbeat
		if read < len(told) {
			id = eventID{"from", 0, 0}
			if read > 0 {
				id = eventID{"from", from.events[read-1].followed, uint64(read)}
			}
		}
		to := newEventLog("to", span.Instant(rapid.IntRange(-20, 40).Draw(t, "began")))
		numbers := make(map[int]uint64)
		lags := make([]int, len(stored))
		for i := range stored {
			lags[i] = stored[i] + rapid.IntRange(-overlap+1, 30).Draw(t, "lag") // a node may show it earlier
		}
		order := make([]int, len(stored))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(lags[a], lags[b]) })
		for _, i := range order {
			if span.Instant(lags[i]) >= to.complete {
				to.add(event{}, span.Instant(lags[i]))
				numbers[i] = to.last
			}
		}
		number, whole := to.resume(id)
		if !whole {
			return // the client reads everything again
		}
		for i := range stored {
			if had := i < read; !had && (numbers[i] == 0 || numbers[i] <= number) {
				t.Fatalf("commit %d at %d is told by neither: %v resumes after %d of %v", i, stored[i], id, number, numbers)
			}
		}
	})
}

func TestAnIDOfAnEventIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := eventID{processID(rapid.String().Draw(t, "replica")), span.Instant(rapid.Int64().Draw(t, "until")), rapid.Uint64().Draw(t, "number")}
		if got, ok := parseEventID(id.String()); !ok || got != id {
			t.Fatalf("%v is read as %v, %v", id, got, ok)
		}
	})
	for _, text := range []string{"", "a", "a.b.c", "a.1", "a.1.-1", ".1.1", "a.1.1.1"} {
		if id, ok := parseEventID(text); ok {
			t.Errorf("%q is read as %v", text, id)
		}
	}
}

func TestAnEventHasTheClaimsBeforeAndAfter(t *testing.T) {
	state := func(status reservation.Status, host string, start, end span.Instant) *reservation.Reservation {
		w := span.Span{Start: start, End: end}
		return &reservation.Reservation{Status: status, Span: w, Claims: []reservation.Claim{{Host: host, Span: w}}}
	}
	waiting := &reservation.Reservation{Status: reservation.Waiting, Span: span.Span{Start: 10, End: 20}}
	for name, test := range map[string]struct {
		before, after *reservation.Reservation
		change        string
		claims        bool
		span          span.Span
		hosts         []string
	}{
		"booked":    {nil, state("pending", "A", 10, 20), "created", true, span.Span{Start: 10, End: 20}, []string{"A"}},
		"moved":     {state("pending", "A", 10, 20), state("pending", "B", 30, 40), "changed", true, span.Span{Start: 10, End: 40}, []string{"A", "B"}},
		"started":   {state("pending", "A", 10, 20), state("active", "A", 10, 20), "changed", false, span.Span{Start: 10, End: 20}, []string{"A"}},
		"ended":     {state("active", "A", 10, 20), state("ended", "A", 10, 20), "over", true, span.Span{Start: 10, End: 20}, []string{"A"}},
		"not known": {nil, state("canceled", "A", 10, 20), "over", true, span.Span{Start: 10, End: 20}, []string{"A"}},
		"waits":     {nil, waiting, "created", false, span.Span{Start: 10, End: 20}, nil},
		"had room":  {waiting, state("pending", "A", 20, 30), "changed", true, span.Span{Start: 10, End: 30}, []string{"A"}},
		"no room":   {waiting, &reservation.Reservation{Status: reservation.Canceled, Span: waiting.Span}, "over", false, span.Span{Start: 10, End: 20}, nil},
		"given up":  {waiting, nil, "over", false, span.Span{Start: 10, End: 20}, nil},
		"removed":   {state("pending", "A", 10, 20), nil, "over", true, span.Span{Start: 10, End: 20}, []string{"A"}},
	} {
		e := eventOf(booking.Learned{Before: test.before, After: test.after})
		if e.change != test.change || e.claims != test.claims || e.span != test.span || !slices.Equal(e.hosts, test.hosts) || e.reservation.Claims != nil {
			t.Errorf("%s: got %+v", name, e)
		}
	}
}
