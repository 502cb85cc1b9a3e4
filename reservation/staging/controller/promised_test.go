// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// shelf is a scene whose hosts remove each image as early as they may, although it is promised: they
// know nothing of reservations. Nothing fails.
type shelf struct {
	*scene
	arrived  map[string]span.Instant // "image/host": when the image arrived or was last requested
	admitted int
}

func newShelf(t *rapid.T) *shelf {
	h := &shelf{arrived: map[string]span.Instant{}}
	h.scene = newScene(t, func(s *scene) {
		s.rules.Strategy = rapid.SampledFrom(staging.Strategies).Draw(t, "strategy")
		s.rules.Limit = rapid.SampledFrom([]int64{0, 12_000, 20_000}).Draw(t, "limit") * mega
		s.rules.Lifetime = rapid.SampledFrom([]int64{0, 300, 600}).Draw(t, "lifetime")
		s.rules.Link = rapid.SampledFrom([]float64{0, 0, 60}).Draw(t, "link") * mega
		s.rules.Margin = 10
		for i := range 3 {
			s.images[fmt.Sprint("image-", i)] = int64(rapid.IntRange(1, 9).Draw(t, "size")) * 1000 * mega
		}
	})
	rate := 1.3 * h.rules.Rate // the extra rate makes up for the time of the calls
	if h.rules.Link > 0 {
		rate = 1.3 * h.rules.Link
	}
	h.upon = func(a asked) (bool, error) {
		for _, host := range a.hosts {
			key, at := a.image+"/"+host, h.now
			if !h.keeps(key, at) {
				h.busy = max(h.now, h.busy).Add((int64(float64(h.images[a.image])/rate)/poll + 1) * poll) // is heard at once
				at = h.busy
			}
			h.arrived[key] = at
			h.pending = append(h.pending, word{controller.Word{Call: a.call, Host: host, Cached: []string{a.image}}, at})
		}
		return false, nil
	}
	for _, host := range []string{"a", "b"} { // enters the hosts
		h.reserve("", "", 0, host)
	}
	h.live = nil
	h.step(0)
	return h
}

// keeps reports whether a host has an image.
func (h *shelf) keeps(key string, at span.Instant) bool {
	since, came := h.arrived[key]
	return came && since <= at && (h.rules.Lifetime == 0 || at <= since.Add(h.rules.Lifetime))
}

// draw draws a reservation on hosts that are free, often after another one. ok is false if none are.
func (h *shelf) draw(t *rapid.T, n int) (r reservation.Reservation, ok bool) {
	start := h.now.Add(poll * rapid.Int64Range(1, 180).Draw(t, "ahead"))
	if len(h.live) > 0 && rapid.Bool().Draw(t, "chained") {
		start = h.live[rapid.IntRange(0, len(h.live)-1).Draw(t, "after")].Span.End.Add(poll * rapid.Int64Range(0, 6).Draw(t, "gap"))
	}
	r = reservation.Reservation{
		ID: fmt.Sprint("r", n), Status: reservation.Pending, Created: h.now, Span: span.New(start, poll*rapid.Int64Range(1, 180).Draw(t, "length")),
		Terms: reservation.Terms{Image: fmt.Sprint("image-", rapid.IntRange(0, 2).Draw(t, "image")), Kind: reservation.Hosts},
	}
	for _, host := range h.hosts {
		taken := slices.ContainsFunc(h.live, func(o reservation.Reservation) bool {
			return slices.Contains(o.HostNames(), host.Name) && o.Span.Overlaps(r.Span)
		})
		if rapid.Bool().Draw(t, "on") && !taken {
			r.Claims = append(r.Claims, reservation.Claim{Host: host.Name, Span: r.Span})
		}
	}
	return r, len(r.Claims) > 0
}

// admit books a reservation if its image can be there in time.
func (h *shelf) admit(t *rapid.T, r reservation.Reservation) {
	if _, err := h.replicas[0].Resolve(t.Context(), r.Image, "p"); err != nil {
		return
	}
	f := h.replicas[0].Known.Facts(h.now)
	image, _ := f.Image(r.Image)
	d := staging.Demand{ID: r.ID, Image: image, Nodes: r.HostNames(), Span: r.Span}
	if _, err := f.Admission(h.now, planning.Demands(f, h.live)).Admit(d); err == nil {
		h.live, h.admitted = append(h.live, r), h.admitted+1
	}
}

// pass advances the clock by one poll, and checks what starts and what the hosts have then.
func (h *shelf) pass(t *rapid.T) {
	h.step(poll)
	h.live = slices.DeleteFunc(h.live, func(r reservation.Reservation) bool { return r.Span.End <= h.now })
	for _, r := range h.live {
		for _, host := range r.HostNames() {
			if r.Span.Start == h.now && !h.keeps(r.Image+"/"+host, h.now) {
				t.Fatalf("%+v starts at %d without its image on %s; the calls were %+v", r, h.now-base, host, h.calls)
			}
		}
	}
	for _, host := range h.hosts {
		sum := int64(0)
		for image, size := range h.images {
			if h.occupies(image, host.Name) {
				sum += size
			}
		}
		if h.rules.Limit > 0 && sum > h.rules.Limit {
			t.Fatalf("at %d, %s has %d MB of images, and may have %d", h.now-base, host.Name, sum/mega, h.rules.Limit/mega)
		}
	}
}

// occupies reports whether an image counts for the limit of a host. If hosts remove no images, one
// that no reservation needs any more does not count.
func (h *shelf) occupies(image, host string) bool {
	needed := slices.ContainsFunc(h.live, func(r reservation.Reservation) bool {
		return r.Image == image && r.Span.Start <= h.now && slices.Contains(r.HostNames(), host)
	})
	return h.keeps(image+"/"+host, h.now) && (h.rules.Lifetime > 0 || needed)
}

func TestWhatIsAdmittedHasItsImageAtItsStartHoweverEarlyHostsRemoveImages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newShelf(t)
		for n := range rapid.IntRange(1, 14).Draw(t, "reservations") {
			for range rapid.IntRange(0, 16).Draw(t, "pause") {
				h.pass(t)
			}
			if r, ok := h.draw(t, n); ok {
				h.admit(t, r)
			}
		}
		for len(h.waiting()) > 0 {
			h.pass(t)
		}
	})
}
