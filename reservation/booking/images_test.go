// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// oneChannel returns facts with images A to D, which take 48 s each, and no pool limit.
func oneChannel() *staging.Facts {
	f := &staging.Facts{
		Site:   staging.Site{Strategy: staging.EDF, Repositories: []staging.Repository{{Name: "glance", Rate: 12.5}}},
		Images: map[string]staging.Image{}, Pools: map[string][]staging.Entry{},
	}
	for _, id := range []string{"A", "B", "C", "D"} {
		f.Images[id] = staging.Image{ID: id, Size: 600}
	}
	return f
}

func looking(f *staging.Facts) func(*booking.Options) {
	return func(o *booking.Options) { o.Images = func() *staging.Facts { return f } }
}

func withImage(image string, req reservation.Request) reservation.Request {
	req.Image = image
	return req
}

// pool puts an image into a host's pool until that many seconds after base.
func pool(f *staging.Facts, host, image string, until int64) {
	f.Pools[host] = append(f.Pools[host], staging.Entry{Image: f.Images[image], Expire: at(until)})
}

func TestAnImageThatCannotBeThereInTimeIsRefusedThoughHostsAreFree(t *testing.T) {
	s := newScene(t, named("a", "b"), looking(oneChannel()))
	_, err := s.bookings.Book(t.Context(), owner, withImage("A", during(2, 60, 200)), nil)
	got := refusal(t, err)
	if got.Constraint != reservation.ImageTransfer || got.EarliestStart != at(96) || got.LargestQuantity != 1 || got.Free != 2 || !strings.Contains(got.Message, "image A") {
		t.Errorf("two transfers take 96 s: %+v", got)
	}
	if r := s.book(t, withImage("A", during(2, 96, 200))); r.Image != "A" {
		t.Errorf("booked %+v", r)
	}
	if _, err := s.bookings.Book(t.Context(), owner, during(2, 0, 90), nil); err != nil {
		t.Errorf("without an image: %v", err)
	}
}

func TestARequestWithoutATimeStartsWhenItsImageCanBeThere(t *testing.T) {
	now := func(image string, quantity int, seconds int64) reservation.Request {
		req := withImage(image, during(quantity, 0, seconds))
		req.Start, req.End, req.Duration = 0, 0, seconds
		return req
	}
	s := newScene(t, named("a", "b"), looking(oneChannel()))
	r := s.book(t, now("A", 2, 100))
	if r.Span != span.New(at(96), 100) || r.DelayedByBoot {
		t.Errorf("two transfers take 96 s, and nothing boots: %v, %v", r.Span, r.DelayedByBoot)
	}
	if r := s.book(t, now("A", 1, 40)); r.Span != span.New(at(48), 40) {
		t.Errorf("the host is free until 96, and its image arrives at 48: %v", r.Span)
	}
}

func TestARequestWithoutATimeWaitsForItsImageAndForNoOtherReservation(t *testing.T) {
	req := withImage("A", during(1, 0, 100))
	req.Start, req.End, req.Duration = 0, 0, 100
	s := newScene(t, named("a"), looking(oneChannel()))
	s.book(t, during(1, 120, 500))
	_, err := s.bookings.Book(t.Context(), owner, req, nil)
	if got := refusal(t, err); got.Constraint != reservation.ImageTransfer || got.EarliestStart != at(500) {
		t.Errorf("the host has no free 100 s from 48 on: %+v", got)
	}

	s = newScene(t, named("a"), looking(oneChannel()), limited(planning.Limits{StartAhead: 30}))
	_, err = s.bookings.Book(t.Context(), owner, req, nil)
	if got := refusal(t, err); got.Constraint != reservation.ImageTransfer || got.EarliestStart != 0 {
		t.Errorf("a start at 48 is further ahead than allowed: %+v", got)
	}
}

func TestWhereImagesAreNotLookedAtNothingIsRefusedForThem(t *testing.T) {
	newScene(t, named("a")).book(t, withImage("unknown", during(1, 0, 100)))
	newScene(t, named("a"), looking(nil)).book(t, withImage("unknown", during(1, 0, 100)))
}

func TestAnImageOfUnknownSizeIsNamed(t *testing.T) {
	s := newScene(t, named("a"), looking(oneChannel()))
	_, err := s.bookings.Book(t.Context(), owner, withImage("E", during(1, 100, 200)), nil)
	if f := fault.Of(err); f.Kind != fault.Invalid || f.Field != "image" {
		t.Errorf("got %v", err)
	}
}

func TestAFullPoolIsRefusedWithTheTimeWhenItHasRoom(t *testing.T) {
	f := oneChannel()
	f.Site.Limit = 1000
	pool(f, "a", "B", 300)
	s := newScene(t, named("a"), looking(f))
	_, err := s.bookings.Book(t.Context(), owner, withImage("A", during(1, 100, 200)), nil)
	if got := refusal(t, err); got.Constraint != reservation.ImagePool || got.EarliestStart != at(348) {
		t.Errorf("B goes at 300, A takes 48 s: %+v", got)
	}
}

func TestAHostThatWillHaveTheImageIsChosenFirst(t *testing.T) {
	f := oneChannel()
	pool(f, "c", "A", 300)
	s := newScene(t, named("a", "b", "c"), looking(f))
	for _, step := range []struct {
		why  string
		req  reservation.Request
		want []string
	}{
		{"c has A in its pool", withImage("A", during(1, 250, 300)), []string{"c"}},
		{"c has B as well as others", withImage("B", during(1, 310, 400)), []string{"a"}},
		{"B comes to a", withImage("B", during(2, 500, 600)), []string{"a", "b"}},
		{"c had A until 300", withImage("A", during(1, 301, 400)), []string{"b"}},
		{"instances go where the image is", withImage("A", cpus(1, 2, 700, 800)), []string{"b×2"}},
	} {
		if got := claimed(s.book(t, step.req)); !cmp.Equal(got, step.want) {
			t.Errorf("%s: got %v, want %v", step.why, got, step.want)
		}
	}
}

// A000_1WithImages is check A000-1 of paper 000.
func TestA000_1WithImages(t *testing.T) {
	f := oneChannel()
	pool(f, "N3", "A", 300)
	hosts := named("N1", "N2", "N3")
	for i := range hosts {
		hosts[i].Capacity = resource.Vector{VCPUs: 2, MemoryMB: 1024}
	}
	for quantity, want := range map[int][]string{4: {"N3×2", "N2×2"}, 5: {"N3×2", "N2×2", "N1×1"}, 6: nil} {
		s := newScene(t, hosts, looking(f))
		s.book(t, only("N1", cpus(1, 1, 100, 200)))
		plan, err := s.bookings.Offer(t.Context(), owner, withImage("A", cpus(1, quantity, 150, 250)))
		if want == nil {
			if got := refusal(t, err); got.Constraint != reservation.HostsFree || got.LargestQuantity != 5 {
				t.Errorf("six: %+v", got)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, claimed(reservation.Reservation{Claims: plan.Claims})); diff != "" || len(plan.Images().Transfers) != len(want)-1 {
			t.Errorf("%d: transfers %+v, hosts (-want +got):\n%s", quantity, plan.Images().Transfers, diff)
		}
	}
}

func TestAWindowWithRoomIsUsedForTheSakeOfTheImage(t *testing.T) {
	s := newScene(t, named("a", "b"), looking(oneChannel()))
	s.book(t, only("a", during(1, 100, 150)))
	req := withImage("A", during(2, 10, 400))
	req.Duration = 50
	if r := s.book(t, req); r.Span != span.New(at(150), 50) {
		t.Errorf("the transfers are over at 96, the hosts free from 150: %v", r.Span)
	}
	req = withImage("B", during(1, 10, 150))
	req.Duration = 50
	if r := s.book(t, req); r.Span.Start != at(100) && r.Span.Start != at(48) {
		t.Errorf("starts at %v", r.Span)
	}
}

func TestAChangeOfAPendingReservationChecksItsTransfers(t *testing.T) {
	s := newScene(t, named("a", "b"), looking(oneChannel()))
	r := s.book(t, withImage("A", during(1, 60, 200)))
	if _, err := s.bookings.Change(t.Context(), owner, r.ID, starts(47)); refusal(t, err).Constraint != reservation.ImageTransfer {
		t.Errorf("47 s are too few: %v", err)
	}
	_, err := s.bookings.Change(t.Context(), owner, r.ID, quantity(2))
	if got := refusal(t, err); got.Constraint != reservation.ImageTransfer || got.LargestQuantity != 1 {
		t.Errorf("two transfers by 60: %+v", got)
	}
	s.change(t, r.ID, starts(96))
	s.change(t, r.ID, quantity(2))
	s.now.Store(int64(at(90))) // too late for a transfer by 96
	s.change(t, r.ID, ends(150))
	s.change(t, r.ID, quantity(1))
	if _, err := s.bookings.Change(t.Context(), owner, r.ID, starts(95)); refusal(t, err).Constraint != reservation.ImageTransfer {
		t.Errorf("earlier than what is late already: %v", err)
	}
}

func TestHealingPrefersAHostWithTheImageAndTakesAnyOther(t *testing.T) {
	f := oneChannel()
	pool(f, "c", "A", 1000)
	s := newScene(t, named("a", "b", "c"), looking(f))
	r := s.book(t, only("a", withImage("A", during(1, 100, 200))))
	down := func(hosts ...string) planning.Failed {
		return func(host string) (string, bool) { return "it is down", strings.Contains(fmt.Sprint(hosts), host) }
	}
	// The filter names a, so no other host matches.
	r2 := s.book(t, withImage("B", during(1, 500, 600)))
	for _, step := range []struct {
		id   string
		down planning.Failed
	}{{r.ID, down("a")}, {r2.ID, down("a")}} {
		if _, _, err := s.bookings.Heal(t.Context(), step.id, step.down); err != nil {
			t.Fatal(err)
		}
	}
	r3 := s.book(t, withImage("A", during(1, 700, 800)))
	if got := claimed(r3); !cmp.Equal(got, []string{"c"}) && !cmp.Equal(got, []string{"a"}) {
		t.Errorf("c has image A, and a will get it: %v", got)
	}
	healed, changed, err := s.bookings.Heal(t.Context(), r3.ID, down(r3.Claims[0].Host))
	if err != nil || !changed || len(healed.Claims) != 1 {
		t.Errorf("healed %v, %v, %v", claimed(healed), changed, err)
	}
	s.now.Store(int64(at(699))) // too late for any transfer
	healed, changed, err = s.bookings.Heal(t.Context(), r3.ID, down(healed.Claims[0].Host))
	if err != nil || !changed || healed.Degraded != "" {
		t.Errorf("a host without the image is better than none: %v, %v, %v", claimed(healed), changed, err)
	}
}

func TestTwoReplicasDoNotPromiseTheSameTransferTime(t *testing.T) {
	for range 20 {
		all := replicas(t, 2, named("a", "b"), unsteady(0), looking(oneChannel()))
		var accepted atomic.Int64
		done := make(chan error, 2)
		for i, host := range []string{"a", "b"} {
			go func() {
				_, err := all[i].bookings.Book(t.Context(), owner, only(host, withImage("A", during(1, 60, 200))), nil)
				if err == nil {
					accepted.Add(1)
				}
				done <- err
			}()
		}
		for range 2 {
			if err := <-done; err != nil && refusal(t, err).Constraint != reservation.ImageTransfer {
				t.Fatal(err)
			}
		}
		if accepted.Load() != 1 {
			t.Fatalf("%d of two replicas promise a transfer of 48 s by 60", accepted.Load())
		}
		agree(t, all)
	}
}

func TestAReplicaThatDoesNotKnowOfAnotherTransferIsRefusedByTheRecords(t *testing.T) {
	all := replicas(t, 2, named("a", "b"), looking(oneChannel()))
	all[0].book(t, only("a", withImage("A", during(1, 60, 200))))
	if _, err := all[1].bookings.Offer(t.Context(), owner, only("b", withImage("B", during(1, 60, 200)))); err != nil {
		t.Fatalf("the replica that knows of no transfer: %v", err)
	}
	_, err := all[1].bookings.Book(t.Context(), owner, only("b", withImage("B", during(1, 60, 200))), nil)
	if got := refusal(t, err); got.Constraint != reservation.ImageTransfer || got.EarliestStart != at(96) {
		t.Errorf("got %+v", got)
	}
	all[1].book(t, only("b", withImage("B", during(1, 96, 200))))
	all[0].book(t, only("a", withImage("C", during(1, 200, 300))))
	agree(t, all)
}

// This is the whole promise about images: none is late.
//
//make:test-drawn
func TestWhateverIsBookedChangedOrCanceledAllImagesCanBeThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := oneChannel()
		f.Site.Strategy = rapid.SampledFrom(staging.Strategies).Draw(t, "strategy")
		hosts := named("a", "b", "c")
		s := newScene(t, hosts, looking(f))
		var ids []string
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			s.act(t, &ids)
			s.check(t)
			state := f.State(s.clock(), planning.Demands(f, s.bookings.Live(span.Span{Start: 0, End: span.Forever})))
			if _, late := state.Schedule(f.Site, s.clock()); len(late) > 0 {
				t.Fatalf("late: %+v", late)
			}
		}
	})
}

// A service keeps what the demands of its reservations need from one decision to the next.
func TestWhatIsKeptForImagesDecidesLikeAServiceThatHasJustBegun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := oneChannel()
		f.Site.Lifetime = rapid.SampledFrom([]int64{0, 200}).Draw(t, "lifetime")
		s := newScene(t, named("a", "b", "c"), looking(f))
		var ids []string
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			s.act(t, &ids)
			s.compareWithANewService(t, ids)
		}
		for range rapid.IntRange(0, 4).Draw(t, "pauses") {
			s.passTo(t, s.clock().Add(rapid.SampledFrom([]int64{1, 1, 30}).Draw(t, "pause")))
			s.compareWithANewService(t, ids)
		}
	})
}

func (s *scene) compareWithANewService(t *rapid.T, ids []string) {
	other := *s
	other.restart(t)
	start := int64(s.clock()-base) + rapid.Int64Range(0, 200).Draw(t, "ahead")
	req := withImage(rapid.SampledFrom([]string{"A", "B"}).Draw(t, "image of another"), during(rapid.IntRange(1, 3).Draw(t, "hosts"), start, start+50))
	same(t, s, &other, func(d *booking.Service) (planning.Plan, error) { return d.Offer(t.Context(), owner, req) })
	if len(ids) > 0 {
		id := rapid.SampledFrom(ids).Draw(t, "changed")
		same(t, s, &other, func(d *booking.Service) (planning.Plan, error) {
			return d.OfferChange(t.Context(), owner, id, starts(start))
		})
	}
}

// same fails if two services decide differently.
func same(t *rapid.T, s, other *scene, decide func(*booking.Service) (planning.Plan, error)) {
	t.Helper()
	got, gotErr := decide(s.bookings)
	want, wantErr := decide(other.bookings)
	if diff := cmp.Diff(wantErr, gotErr); diff != "" {
		t.Fatalf("the refusal (-want +got):\n%s", diff)
	}
	if (got.Images == nil) != (want.Images == nil) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	if got.Images != nil {
		if diff := cmp.Diff(want.Images(), got.Images()); diff != "" {
			t.Fatalf("the images (-want +got):\n%s", diff)
		}
	}
	got.Images, want.Images = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the plan (-want +got):\n%s", diff)
	}
}

// act books, changes or cancels something at random.
func (s *scene) act(t *rapid.T, ids *[]string) {
	start := rapid.Int64Range(0, 300).Draw(t, "start")
	end := start + rapid.Int64Range(1, 200).Draw(t, "length")
	n := rapid.IntRange(1, 3).Draw(t, "quantity")
	what := rapid.IntRange(0, 9).Draw(t, "what")
	if what < 6 || len(*ids) == 0 {
		req := withImage(rapid.SampledFrom([]string{"", "A", "B", "C"}).Draw(t, "image"), during(n, start, end))
		if rapid.Bool().Draw(t, "flexible") {
			req.Duration = max(1, (end-start)/2)
		}
		if rapid.Bool().Draw(t, "instances") {
			req.Kind, req.Resources = reservation.Instances, resource.Vector{VCPUs: 3}
		}
		if r, err := s.bookings.Book(t.Context(), owner, req, nil); err == nil {
			*ids = append(*ids, r.ID)
		} else if got := refusal(t, err); got.EarliestStart != 0 && (got.Constraint == reservation.ImageTransfer || got.Constraint == reservation.HostsFree) {
			if req.Duration == 0 {
				req.Duration = end - start
			}
			req.Start, req.End = got.EarliestStart, got.EarliestStart.Add(req.Duration)
			if _, err := s.bookings.Offer(t.Context(), owner, req); err != nil {
				t.Fatalf("at the earliest start, %v: %v", got.EarliestStart, err)
			}
		}
		return
	}
	id := rapid.SampledFrom(*ids).Draw(t, "which")
	if what == 9 {
		_, _ = s.bookings.Cancel(t.Context(), owner, id)
		return
	}
	c := []planning.Change{starts(start), ends(end), quantity(n)}[what-6]
	_, _ = s.bookings.Change(t.Context(), owner, id, c) // refused or not
}

// The clock advances, and the transfers are carried out as scheduled.
func TestWhatIsBookedHasItsImageWhenItStarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := oneChannel()
		f.Site.Strategy = rapid.SampledFrom(staging.Strategies).Draw(t, "strategy")
		f.Site.Limit = rapid.SampledFrom([]int64{0, 700, 1300}).Draw(t, "limit")
		f.Site.Margin = rapid.SampledFrom([]int64{0, 5}).Draw(t, "margin")
		facts := f
		s := newScene(t, named("a", "b", "c"), func(o *booking.Options) { o.Images = func() *staging.Facts { return facts } })
		all := span.Span{Start: 0, End: span.Forever}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			start := rapid.Int64Range(0, 300).Draw(t, "start")
			req := withImage(rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "image"), during(rapid.IntRange(1, 3).Draw(t, "quantity"), 0, 0))
			req.Start = s.clock().Add(start)
			req.End = req.Start.Add(rapid.Int64Range(1, 150).Draw(t, "length"))
			if _, err := s.bookings.Book(t.Context(), owner, req, nil); err != nil {
				refusal(t, err)
			}
			now := s.clock().Add(rapid.Int64Range(0, 60).Draw(t, "pass"))
			state := facts.State(s.clock(), planning.Demands(facts, s.bookings.Live(all)))
			if _, late := state.Schedule(facts.Site, s.clock()); len(late) > 0 {
				t.Fatalf("late at %v: %+v", s.clock(), late)
			}
			facts = transferred(t, facts, state, s.bookings.Live(all), now)
			s.passTo(t, now)
			s.check(t)
		}
	})
}

// transferred returns the facts at now, with all transfers that were due by then. It fails if
// a reservation that has started did not have its image at its start.
func transferred(t *rapid.T, f *staging.Facts, s staging.State, live []reservation.Reservation, now span.Instant) *staging.Facts {
	for _, r := range live {
		if r.Span.Start < s.At || r.Span.Start > now {
			continue
		}
		there := s.Advance(f.Site, r.Span.Start)
		for _, host := range r.HostNames() {
			has := false
			for _, e := range there.Pools[host] {
				has = has || e.Image.ID == r.Image && e.From <= r.Span.Start && e.Expire >= r.Span.End
			}
			if !has {
				t.Fatalf("%s starts at %v without %s on %s: %+v", r.ID, r.Span.Start, r.Image, host, there.Pools[host])
			}
		}
	}
	next := *f
	s = s.Advance(f.Site, now)
	next.Pools, next.Running = s.Pools, nil
	for _, tr := range s.Transfers {
		if tr.Started {
			next.Running = append(next.Running, tr)
		}
	}
	return &next
}

func TestAHostThatIsGivenAfterTheStartDemandsItsImageFromThen(t *testing.T) {
	f := oneChannel()
	s := newScene(t, named("a", "b", "c"), looking(f))
	r := s.running(t, only("a", withImage("A", during(1, 100, 1000))))
	s.now.Store(int64(at(300)))
	later := staging.Demand{ID: r.ID, Image: f.Images["A"], Span: span.Span{Start: at(300), End: at(1000)}, Joining: true}
	r.Claims = append(r.Claims, reservation.Claim{Host: "b", Span: later.Span})
	later.Nodes = []string{"b"}
	want := []staging.Demand{{ID: r.ID, Image: f.Images["A"], Nodes: []string{"a"}, Span: r.Span}, later}
	demands := planning.Demands(f, []reservation.Reservation{r})
	if diff := cmp.Diff(want, demands); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if state := f.State(at(301), demands); len(state.Transfers) != 1 || state.Transfers[0].Node != "b" {
		t.Errorf("b lacks A: %+v", state.Transfers)
	}
}
