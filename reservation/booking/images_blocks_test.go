// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// What a refusal names is in the way: when the reservations that hold these hosts in the requested time
// are canceled, the same request is accepted. If it names nothing, that does not help. So it is for each
// policy and strategy, and for pools with a limit, images that age, and links.
func TestWithoutWhatBlocksItARequestWithAnImageIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawImageCloud(t, 0, 20, 60)
		if rapid.Bool().Draw(t, "limits") {
			c.facts.Site.Limit = rapid.SampledFrom([]int64{30, 47}).Draw(t, "limit")
		}
		if rapid.Bool().Draw(t, "links") {
			c.facts.Site.Links = map[string]float64{"a": 0.5, "b": 0.8}
		}
		c.restart(t)
		c.passTo(t, at(rapid.SampledFrom([]int64{0, 0, 30, 60}).Draw(t, "now")))
		for range 5 {
			req := drawImaged(t, c.scene)
			_, err := c.bookings.Offer(t.Context(), owner, req)
			if refused, is := errors.AsType[*reservation.Refusal](err); is {
				c.holdBlocks(t, req, refused)
				return
			}
		}
	})
}

// holdBlocks cancels what is in the way of a request, and then asks again.
func (c imageCloud) holdBlocks(t *rapid.T, req reservation.Request, refused *reservation.Refusal) {
	t.Helper()
	exact := reservation.Request{Terms: req.Terms, Start: max(req.Start, c.clock()), Duration: cmp.Or(req.Duration, int64(req.End-req.Start))}
	wanted := span.New(exact.Start, exact.Duration)
	inTheWay := func(claim reservation.Claim) bool {
		return claim.Span.Overlaps(wanted) && c.matches(c.host(claim.Host), req.HostProperties, wanted.Start)
	}
	blocked, canceled := len(refused.BlockedBy) > 0, false
	for _, r := range c.live(t) {
		if !slices.ContainsFunc(r.Claims, inTheWay) {
			continue
		}
		canceled = true
		t.Logf("cancel %s: %v with %q, %v", r.ID, r.Span, r.Image, r.Claims)
		if _, err := c.bookings.Cancel(t.Context(), owner, r.ID); err != nil {
			t.Fatalf("cancel: %v", err)
		}
	}
	_, first := c.bookings.Offer(t.Context(), owner, exact)
	_, window := c.bookings.Offer(t.Context(), owner, req)
	if blocked && (first != nil || window != nil) || !blocked && canceled && first == nil {
		t.Fatalf("%+v at %v: %v, blocked by %v; without that: %v at its first start, %v in its window", req, c.clock(), refused, refused.BlockedBy, first, window)
	}
}

// A reservation that is in the way may also need a transfer, or keep the image that is asked for on its hosts.
func TestWhatBlocksARequestWithAnImageIsGoneWithItsImages(t *testing.T) {
	for name, tc := range map[string]struct {
		pooled, start int64
		image         string
		quantity      int
		want          []string
	}{
		"it keeps an image that would be dropped": {60, 90, "A", 2, nil},
		"each host can get the image in time":     {60, 100, "A", 2, []string{"a"}},
		"its image takes all the time":            {0, 50, "B", 1, []string{"a"}},
		"no image can be there so soon":           {0, 47, "B", 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := oneChannel()
			if tc.pooled > 0 {
				pool(f, "a", "A", tc.pooled)
			}
			s := newScene(t, named("a", "b"), looking(f))
			r := s.book(t, withImage("A", only("a", during(1, 50, 200))))
			req := withImage(tc.image, during(tc.quantity, tc.start, tc.start+30))
			_, err := s.bookings.Offer(t.Context(), owner, req)
			var got []string
			for _, b := range refusal(t, err).BlockedBy {
				got = append(got, b.Host)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("blocked on %v, want %v: %v", got, tc.want, err)
			}
			if _, err := s.bookings.Cancel(t.Context(), owner, r.ID); err != nil {
				t.Fatal(err)
			}
			if _, err := s.bookings.Offer(t.Context(), owner, req); (err == nil) != (tc.want != nil) {
				t.Errorf("without the reservation: %v", err)
			}
		})
	}
}

// A host with instances that is reserved now comes last once the reservation is gone, so that reservation is not in the way of a
// request that would take other hosts then.
func TestAReservationOnAHostWithInstancesIsNotInTheWayOfWhatTakesOtherHosts(t *testing.T) {
	f := oneChannel()
	f.Site.Limit = 1000
	pool(f, "c", "B", 300) // no room for A until then
	hosts := named("a", "b", "c")
	hosts[0].InstanceCount = 1
	s := newScene(t, hosts, looking(f))
	r := s.book(t, only("a", during(1, 0, 150)))
	req := withImage("A", during(2, 100, 200))
	_, err := s.bookings.Offer(t.Context(), owner, req)
	if got := refusal(t, err); got.Constraint != reservation.ImagePool || len(got.BlockedBy) != 0 {
		t.Errorf("refused by %s, blocked by %v", got.Constraint, got.BlockedBy)
	}
	if _, err := s.bookings.Cancel(t.Context(), owner, r.ID); err != nil {
		t.Fatal(err)
	}
	_, err = s.bookings.Offer(t.Context(), owner, req)
	refusal(t, err)
}
