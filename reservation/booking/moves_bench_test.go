// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// amongMovable returns a service with 1,000 movable reservations of four hosts on 1,000 hosts, 250 at each of four times, which hold all hosts.
func amongMovable(b *testing.B) *scene {
	b.Helper()
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("node-%04d", i)
	}
	s := newScene(b, named(names...))
	for i := range int64(1000) {
		start := 100_000 + i/250*30_000
		if _, err := s.bookings.Book(b.Context(), other, movable(4, start, start+30_000, 20_000, 3600), nil); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// BenchmarkMoves measures a booking that moves another reservation among 1,000 movable ones on 1,000 hosts, beside one that has room,
// and one that is refused since nothing that may move makes room.
func BenchmarkMoves(b *testing.B) {
	plain := during(3, 10_000, 20_000)
	moving := during(3, 132_000, 135_000)
	refused := during(2, 131_000, 140_900)
	for _, tc := range []struct {
		name string
		req  reservation.Request
		room bool
	}{{"plain", plain, true}, {"moving", moving, true}, {"refused", refused, false}} {
		b.Run(tc.name, func(b *testing.B) {
			s := amongMovable(b)
			for b.Loop() {
				r, err := s.bookings.Book(b.Context(), owner, tc.req, nil)
				if _, no := errors.AsType[*reservation.Refusal](err); no == tc.room || err != nil && !no {
					b.Fatalf("it is refused: %v, %v", no, err)
				}
				b.StopTimer()
				if err == nil {
					if _, err := s.bookings.Cancel(b.Context(), owner, r.ID); err != nil {
						b.Fatal(err)
					}
				}
				s.putBack(b)
				b.StartTimer()
			}
		})
	}
}

// putBack books what has moved at its first time.
func (s *scene) putBack(b *testing.B) {
	b.Helper()
	for _, r := range s.bookings.Live(span.Span{Start: at(130_000), End: at(160_000)}) {
		if _, moved := r.LastEvent(reservation.MovedEvent); !moved {
			continue
		}
		if _, err := s.bookings.Cancel(b.Context(), booking.Caller{Admin: true}, r.ID); err != nil {
			b.Fatal(err)
		}
		req := movable(r.Quantity, int64(r.Window.Start-base), int64(r.Window.End-base), r.Span.Seconds(), r.Notice)
		if _, err := s.bookings.Book(b.Context(), other, req, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkExtensions measures the decision about a later end among 250 reservations of 1,000 hosts that follow: one with room, one
// for which the next neighbor moves, and one that is refused since no neighbor has other hosts, also before the start, when neighbors
// of other hosts are tried too.
func BenchmarkExtensions(b *testing.B) {
	for _, tc := range []struct {
		name      string
		neighbors int64
		end       int64
		active    bool
	}{{"plain", 249, 9_000, true}, {"moving", 249, 15_000, true}, {"refused", 250, 15_000, true}, {"refused before the start", 250, 15_000, false}} {
		b.Run(tc.name, func(b *testing.B) {
			names := make([]string, 1000)
			for i := range names {
				names[i] = fmt.Sprintf("node-%04d", i)
			}
			s := newScene(b, named(names...))
			r := s.book(b, during(4, 1, 8_000))
			for range tc.neighbors {
				s.bookMovable(b, during(4, 10_000, 20_000))
			}
			if tc.active {
				s.passTo(b, at(10))
			}
			for b.Loop() {
				_, err := s.bookings.OfferChange(b.Context(), owner, r.ID, planning.Change{End: new(at(tc.end))})
				if (err != nil) != (tc.neighbors == 250) {
					b.Fatal(err)
				}
			}
		})
	}
}
