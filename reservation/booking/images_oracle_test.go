// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// The oracle for images tries each start second by second, and each set of hosts. It works out the
// transfers from the reservations alone.

// imageCloud is a scene whose hosts get images over one channel.
type imageCloud struct {
	*scene
	facts *staging.Facts
}

// farthest is how many seconds ahead the oracle looks for a start.
const farthest = 400

func drawImageCloud(t *rapid.T, lifetimes ...int64) imageCloud {
	c := imageCloud{facts: &staging.Facts{
		Site: staging.Site{
			Strategy:     rapid.SampledFrom(staging.Strategies).Draw(t, "strategy"),
			Repositories: []staging.Repository{{Name: "glance", Rate: 1}},
			Margin:       rapid.SampledFrom([]int64{0, 0, 5}).Draw(t, "margin"),
			Lifetime:     rapid.SampledFrom(lifetimes).Draw(t, "lifetime"),
		},
		Images: map[string]staging.Image{"A": {ID: "A", Size: 17}, "B": {ID: "B", Size: 30}},
		Pools:  map[string][]staging.Entry{},
	}}
	hosts := named([]string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "hosts")]...)
	for i := range hosts {
		h := &hosts[i]
		h.Capacity.VCPUs = rapid.SampledFrom([]int64{2, 2, 4}).Draw(t, "vcpus")
		if h.InstanceCount = max(0, rapid.IntRange(-2, 1).Draw(t, "guests")); h.InstanceCount > 0 {
			h.Used.MemoryMB = 16000
		}
		for image := range rapid.IntRange(0, 2).Draw(t, "has") {
			id := []string{"A", "B"}[image]
			if rapid.IntRange(0, 2).Draw(t, "pooled") == 0 {
				pool(c.facts, h.Name, id, 10*rapid.Int64Range(1, 30).Draw(t, "until"))
			}
		}
	}
	c.scene = newScene(t, hosts, looking(c.facts))
	for range rapid.IntRange(0, 6).Draw(t, "bookings") {
		req := drawImaged(t, c.scene)
		req.Policy = calendar.PolicyFirstFit
		if _, err := c.bookings.Book(t.Context(), owner, req, nil); err != nil {
			refusal(t, err)
		}
	}
	return c
}

// drawImaged draws a request, mostly with an image.
func drawImaged(t *rapid.T, s *scene) reservation.Request {
	start := rapid.Int64Range(0, 120).Draw(t, "start")
	req := during(rapid.IntRange(1, 3).Draw(t, "quantity"), start, start+rapid.Int64Range(1, 60).Draw(t, "length"))
	req.Kind, req.Image = reservation.Hosts, rapid.SampledFrom([]string{"A", "A", "A", "B", ""}).Draw(t, "image")
	if rapid.IntRange(0, 2).Draw(t, "kind") == 0 {
		req.Kind, req.Resources = reservation.Instances, resource.Vector{VCPUs: rapid.SampledFrom([]int64{1, 2}).Draw(t, "size")}
		req.Affinity = rapid.SampledFrom([]calendar.Affinity{"", calendar.AffinitySame, calendar.AffinityDifferent}).Draw(t, "affinity")
	} else {
		req.Policy = rapid.SampledFrom(append([]calendar.Policy{calendar.PolicyFirstFit, calendar.PolicyFirstFit, calendar.PolicyFirstFit}, calendar.Policies...)).Draw(t, "policy")
	}
	switch rapid.IntRange(0, 7).Draw(t, "filter") {
	case 0:
		req = only(rapid.SampledFrom(s.hosts).Draw(t, "host").Name, req)
	case 1:
		req.HostProperties = `[">=", "$free_ram_mb", 4000]`
	}
	switch rapid.IntRange(0, 5).Draw(t, "times") {
	case 0:
		req.Start, req.End, req.Duration = 0, 0, int64(req.End-req.Start)
	case 1, 2:
		req.Duration = int64(req.End - req.Start)
		req.End = req.End.Add(rapid.Int64Range(0, 120).Draw(t, "slack"))
	}
	return req
}

// matches reports whether a host passes a filter for a start.
func (c imageCloud) matches(h *inventory.Host, filter string, start span.Instant) bool {
	switch filter {
	case "":
		return true
	case `[">=", "$free_ram_mb", 4000]`:
		return start > c.clock() || h.Free().MemoryMB >= 4000
	}
	return filter == only(h.Name, reservation.Request{}).HostProperties
}

// room returns how many of the requested hosts or instances have room on a host at a start.
func (c imageCloud) room(h *inventory.Host, terms reservation.Terms, hold span.Span, live []reservation.Reservation) int {
	if !c.matches(h, terms.HostProperties, hold.Start) {
		return 0
	}
	return c.scene.room(h, question{terms: terms, hold: hold}, live)
}

// sets yields each set of hosts on which the request has room from start on.
func (c imageCloud) sets(terms reservation.Terms, hold span.Span, live []reservation.Reservation, yield func(hosts []string) bool) bool {
	for chosen := 1; chosen < 1<<len(c.hosts); chosen++ {
		var hosts []string
		total, fits := 0, true
		for i := range c.hosts {
			if chosen>>i&1 == 0 {
				continue
			}
			n := c.room(&c.hosts[i], terms, hold, live)
			hosts = append(hosts, c.hosts[i].Name)
			total, fits = total+n, fits && n > 0
		}
		if terms.Affinity == calendar.AffinitySame && len(hosts) > 1 || (terms.Kind == reservation.Hosts || terms.Affinity == calendar.AffinityDifferent) && len(hosts) > terms.Quantity {
			continue
		}
		if fits && total >= terms.Quantity && yield(hosts) {
			return true
		}
	}
	return false
}

// accepted reports whether the request can be accepted at a start.
func (c imageCloud) accepted(terms reservation.Terms, hold span.Span, live []reservation.Reservation) bool {
	return c.sets(terms, hold, live, func(hosts []string) bool { return c.inTime(terms.Image, hosts, hold, live) })
}

// need is an image on one host from the start of a reservation until its end.
type need struct {
	host, image string
	hold        span.Span
}

// inTime reports whether all transfers can be in time if the hosts get the image for one more
// reservation.
func (c imageCloud) inTime(image string, hosts []string, hold span.Span, live []reservation.Reservation) bool {
	var needs []need
	for _, r := range live {
		for _, host := range r.HostNames() {
			needs = append(needs, need{host, r.Image, r.Span})
		}
	}
	for _, host := range hosts {
		needs = append(needs, need{host, image, hold})
	}
	slices.SortStableFunc(needs, func(a, b need) int { return cmp.Compare(a.hold.Start, b.hold.Start) })
	site := c.facts.Site
	until := map[[2]string]span.Instant{} // when a host drops an image
	for host, entries := range c.facts.Pools {
		for _, e := range entries {
			until[[2]string{host, e.Image.ID}] = e.Expire
		}
	}
	lasting := map[[2]string]bool{} // it came by a transfer, and images do not age
	free := c.clock()
	for _, n := range needs {
		key := [2]string{n.host, n.image}
		if n.image == "" {
			continue
		}
		if last, has := until[key]; !has || n.hold.Start > last && !lasting[key] {
			begin := free
			if site.Lifetime > 0 {
				begin = max(begin, n.hold.Start.Add(-site.Lifetime))
			}
			if free = begin.Add(c.facts.Images[n.image].Size); free > n.hold.Start.Add(-site.Margin) {
				return false
			}
			lasting[key] = site.Lifetime == 0
		}
		until[key] = max(until[key], n.hold.End.Add(site.Lifetime))
	}
	return true
}

// first returns the first start in [from, to] at which the request can be accepted.
func (c imageCloud) first(terms reservation.Terms, from, to span.Instant, seconds int64, live []reservation.Reservation) (span.Instant, bool) {
	for start := from; start <= to; start++ {
		if c.accepted(terms, span.New(start, seconds), live) {
			return start, true
		}
	}
	return 0, false
}

// Whatever is promised with an image holds, and what could be had is not withheld: each start, the
// earliest start and the largest quantity are those of the oracle.
func TestAnswersAboutImagesAreThoseOfATrialOfEachStartAndEachSetOfHosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawImageCloud(t, 0)
		live := c.live(t)
		for range 3 {
			c.compare(t, drawImaged(t, c.scene), live)
		}
	})
}

func (c imageCloud) compare(t *rapid.T, req reservation.Request, live []reservation.Reservation) {
	t.Helper()
	from, to, seconds := max(req.Start, c.clock()), max(req.Start, c.clock()), cmp.Or(req.Duration, int64(req.End-req.Start))
	immediate := req.Start == 0
	if req.End != 0 {
		to = req.End.Add(-seconds)
	}
	want, possible := c.first(req.Terms, from, to, seconds, live)
	plan, err := c.bookings.Offer(t.Context(), owner, req)
	if err == nil {
		hold := plan.Span
		if !c.inTime(req.Image, hostsOf(plan), hold, live) {
			t.Fatalf("the image is late on %v from %v on", hostsOf(plan), hold)
		}
		if earlier, is := c.first(req.Terms, from, hold.Start-1, seconds, live); is && (immediate || req.Policy == "" || req.Policy == calendar.PolicyFirstFit) {
			t.Fatalf("it starts at %d instead of %d", hold.Start-base, earlier-base)
		}
		return
	}
	refused := refusal(t, err)
	if possible {
		t.Fatalf("%v, though the start %d is possible", refused, want-base)
	}
	earliest, ok := c.first(req.Terms, max(from, c.clock()+1), at(farthest), seconds, live)
	if ok && refused.EarliestStart != earliest || !ok && refused.EarliestStart != 0 && refused.EarliestStart <= at(farthest) {
		t.Fatalf("%v: the earliest start is %d, want %d, %v", refused, refused.EarliestStart-base, earliest-base, ok)
	}
	hold := span.New(from, seconds)
	// What blocks is gone with the images that it needs or keeps. One that relied on these may be late then, with
	// the request or without it.
	others := slices.DeleteFunc(slices.Clone(live), func(r reservation.Reservation) bool {
		return slices.ContainsFunc(r.Claims, func(claim reservation.Claim) bool {
			return claim.Span.Overlaps(hold) && slices.ContainsFunc(refused.BlockedBy, func(b reservation.Block) bool { return b.Host == claim.Host })
		})
	})
	without := func(hosts []string) bool { return c.inTime(req.Image, hosts, hold, others) }
	judges := req.Image != "" && len(refused.BlockedBy) > 0 && c.inTime("", nil, hold, others)
	if judges && !c.sets(req.Terms, hold, nil, without) {
		t.Fatalf("%v: it is not possible without what blocks it either: %v", refused, refused.BlockedBy)
	}
	if immediate {
		return // with another quantity it may start at another time
	}
	terms, largest := req.Terms, 0
	for terms.Quantity = 1; terms.Quantity < 20; terms.Quantity++ {
		if _, ok := c.first(terms, from, to, seconds, live); ok {
			largest = terms.Quantity
		}
	}
	if refused.LargestQuantity != largest {
		t.Fatalf("%v: the largest quantity is %d, want %d", refused, refused.LargestQuantity, largest)
	}
}

func hostsOf(p planning.Plan) []string {
	return (&reservation.Reservation{Claims: p.Claims}).HostNames()
}

// Where images age, where pools have limits and where links differ, an answer may be worse than what is
// possible. What it names is accepted, and the images are there.
func TestWhatARefusalForAnImageNamesIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawImageCloud(t, 0, 20, 60)
		if rapid.Bool().Draw(t, "limits") {
			c.facts.Site.Limit = rapid.SampledFrom([]int64{30, 47}).Draw(t, "limit")
		}
		if rapid.Bool().Draw(t, "links") {
			c.facts.Site.Links = map[string]float64{"a": 0.5, "b": 0.8}
		}
		c.restart(t)
		for range 5 {
			req := drawImaged(t, c.scene)
			_, err := c.bookings.Offer(t.Context(), owner, req)
			refused, is := errors.AsType[*reservation.Refusal](err)
			if !is {
				continue
			}
			if n := refused.LargestQuantity; n > 0 {
				fewer := req
				if fewer.Quantity = n; n >= req.Quantity {
					t.Fatalf("%v: the largest quantity is %d of %d", refused, n, req.Quantity)
				}
				if _, err := c.bookings.Offer(t.Context(), owner, fewer); err != nil {
					t.Fatalf("%v: with the largest quantity, %d: %v", refused, n, err)
				}
			}
			if start := refused.EarliestStart; start != 0 {
				exact := reservation.Request{Terms: req.Terms, Start: start, Duration: cmp.Or(req.Duration, int64(req.End-req.Start))}
				if _, err := c.bookings.Offer(t.Context(), owner, exact); err != nil {
					t.Fatalf("%v: at the earliest start, %d: %v", refused, start-base, err)
				}
			}
		}
	})
}

// The same holds for changes of pending reservations: what a refused one names is accepted.
func TestWhatARefusedChangeNamesForItsImageIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawImageCloud(t, 0, 60)
		for range 5 {
			r, ok := drawLive(t, c.scene)
			if !ok {
				return
			}
			offer := func(change planning.Change) error {
				_, err := c.bookings.OfferChange(t.Context(), owner, r.ID, change)
				return err
			}
			start := at(rapid.Int64Range(0, 120).Draw(t, "new start"))
			change := planning.Change{Start: &start, End: new(start.Add(rapid.Int64Range(1, 60).Draw(t, "new length"))), Quantity: new(rapid.IntRange(1, 4).Draw(t, "new quantity"))}
			refused, is := errors.AsType[*reservation.Refusal](offer(change))
			if !is {
				continue
			}
			if n := refused.LargestQuantity; n > 0 {
				fewer := change
				if fewer.Quantity = &n; offer(fewer) != nil {
					t.Fatalf("%v: with the largest quantity, %d: %v", refused, n, offer(fewer))
				}
			}
			if r.Status == reservation.Pending && refused.EarliestStart != 0 {
				later := change
				later.Start, later.End = &refused.EarliestStart, new(refused.EarliestStart.Add(int64(*change.End-start)))
				if err := offer(later); err != nil {
					t.Fatalf("%v: at the earliest start, %d: %v", refused, refused.EarliestStart-base, err)
				}
			}
		}
	})
}
