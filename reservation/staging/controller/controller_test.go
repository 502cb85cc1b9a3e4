// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// wantCalls compares the calls to the cloud, each with time, image and hosts.
func (s *scene) wantCalls(want ...asked) {
	s.t.Helper()
	var got []asked
	for _, a := range s.calls {
		got = append(got, asked{image: a.image, hosts: a.hosts, at: a.at - base})
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(asked{})); d != "" {
		s.t.Errorf("calls (-want +got):\n%s", d)
	}
}

func (s *scene) wantStates(id string, want map[string]controller.State) {
	s.t.Helper()
	if d := cmp.Diff(want, s.states(id)); d != "" {
		s.t.Errorf("at %d, images of %s (-want +got):\n%s", s.now-base, id, d)
	}
}

func (s *scene) wantTold(id string, want ...string) {
	s.t.Helper()
	if d := cmp.Diff(want, s.remarks(id)); d != "" {
		s.t.Errorf("remarks on %s (-want +got):\n%s", id, d)
	}
}

// large is the size of an image of 10,000 MB, which takes 100 s.
const large = 10_000 * mega

func TestEarliestDeadlineFirstAsksAtOnceForTheHostsOfTheReservation(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = large
	s.reserve("r", "deb", 3600, "a", "b")
	s.hosts = append(s.hosts, inventory.Host{Name: "other"})
	s.step(0)
	s.wantCalls(asked{image: "deb", hosts: []string{"a", "b"}})
	s.wantStates("r", map[string]controller.State{"a": controller.Transferring, "b": controller.Transferring})
	s.run(150)
	s.wantStates("r", map[string]controller.State{"a": controller.Present, "b": controller.Transferring})
	s.run(4000)
	s.wantCalls(asked{image: "deb", hosts: []string{"a", "b"}})
	s.wantStates("r", map[string]controller.State{"a": controller.Present, "b": controller.Present})
	s.wantTold("r")
}

// Both take 200 s and must end 65 s before the start: a minute, and one poll.
func TestJustInTimeAsksWhenItMustBegin(t *testing.T) {
	s := newScene(t, func(s *scene) { s.rules.Strategy = staging.JIT })
	s.images["deb"] = large
	s.reserve("r", "deb", 1000, "a", "b")
	s.run(730)
	s.wantCalls()
	s.wantStates("r", map[string]controller.State{"a": controller.Scheduled, "b": controller.Scheduled})
	s.run(740)
	s.wantCalls(asked{image: "deb", hosts: []string{"a", "b"}, at: 735})
}

func TestATransferThatAStepBeginsLateUsesUpItsMarginBeforeItMakesWay(t *testing.T) {
	s := newScene(t, func(s *scene) { s.rules.Strategy = staging.JIT })
	s.images["deb"] = large
	s.reserve("first", "deb", 1002, "a") // just in time is at 837
	s.reserve("second", "deb", 1102, "b")
	s.run(1002)
	s.wantCalls(asked{image: "deb", hosts: []string{"a", "b"}, at: 840})
	s.wantStates("first", map[string]controller.State{"a": controller.Present})
	s.run(1102)
	s.wantStates("second", map[string]controller.State{"b": controller.Present})
}

func TestAnImageComesNoEarlierThanNovaKeepsIt(t *testing.T) {
	s := newScene(t, func(s *scene) { s.rules.Lifetime = 600 })
	s.images["deb"] = large
	s.reserve("r", "deb", 3600, "a")
	s.run(2995)
	s.wantCalls()
	s.run(3000)
	s.wantCalls(asked{image: "deb", hosts: []string{"a"}, at: 3000})
}

func TestAnImageThatALaterReservationReliesOnIsRequestedAgainBeforeTheHostRemovesIt(t *testing.T) {
	for _, test := range []struct {
		later int64 // the start of the later reservation; 0 means that there is none
		want  []asked
	}{
		{0, []asked{{image: "deb", hosts: []string{"a"}}}},
		{2000, []asked{{image: "deb", hosts: []string{"a"}}}}, // the host still has it
		{3610, []asked{{image: "deb", hosts: []string{"a"}}, {image: "deb", hosts: []string{"a"}, at: 2055}}},
	} {
		s := newScene(t, func(s *scene) { s.rules.Lifetime = 2600 })
		s.images["deb"] = large
		s.reserve("one", "deb", 400, "a") // an hour; the image is there from 105 on
		if test.later > 0 {
			s.reserve("two", "deb", test.later, "a")
		}
		s.run(3610)
		s.wantCalls(test.want...)
		for _, tr := range s.ledger.stored.Transfers {
			if kept := tr.Outcome == controller.TransferKept; kept != (tr.Started > base) {
				t.Errorf("the transfer begun at %d has the outcome %q", tr.Started-base, tr.Outcome)
			}
		}
	}
}

func TestAHostThatHasTheImageIsNotAskedAgain(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = large
	s.reserve("one", "deb", 600, "a")
	s.run(300)
	s.reserve("two", "deb", 7200, "a", "b")
	s.run(600)
	s.wantCalls(asked{image: "deb", hosts: []string{"a"}}, asked{image: "deb", hosts: []string{"b"}, at: 305})
}

func TestAHostThatLeavesTheCloudIsForgotten(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = large
	s.reserve("one", "deb", 600, "a")
	s.run(300)
	s.hosts = nil
	s.run(305)
	s.hosts = []inventory.Host{{Name: "a"}}
	s.live = nil
	s.reserve("two", "deb", 7200, "a")
	s.run(310)
	s.wantCalls(asked{image: "deb", hosts: []string{"a"}}, asked{image: "deb", hosts: []string{"a"}, at: 310})
}

func TestAHostThatRefusesIsTriedAgainAFewTimesAndTheOwnerIsTold(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = large
	s.reserve("r", "deb", 7200, "a", "bad")
	s.broken = func(host string) bool { return host == "bad" }
	s.run(115)
	s.wantStates("r", map[string]controller.State{"a": controller.Present, "bad": controller.Refused})
	s.run(7100)
	bad := []string{"bad"}
	s.wantCalls(asked{image: "deb", hosts: []string{"a", "bad"}},
		asked{image: "deb", hosts: bad, at: 135}, asked{image: "deb", hosts: bad, at: 200}, asked{image: "deb", hosts: bad, at: 325},
		asked{image: "deb", hosts: bad, at: 6735}) // the last attempt, five minutes before it would be late
	s.wantTold("r", "the image could not be put on 1 of 2 hosts so far; a host without it downloads it when an instance boots")
	// Another reservation has its own attempts.
	s.broken = func(string) bool { return false }
	s.reserve("later", "deb", 9000, "bad")
	s.run(7300)
	s.wantStates("later", map[string]controller.State{"bad": controller.Present})
}

func TestATransferOfWhichNothingIsHeardFailsWhenItsTimeIsOver(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = large
	s.reserve("r", "deb", 7200, "a")
	lost := 0
	s.silent = func() bool { lost++; return lost == 1 }
	s.run(359)
	s.wantStates("r", map[string]controller.State{"a": controller.Transferring})
	s.run(365) // three times 100 s, and a minute
	s.wantStates("r", map[string]controller.State{"a": controller.Refused})
	s.run(400)
	s.wantCalls(asked{image: "deb", hosts: []string{"a"}}, asked{image: "deb", hosts: []string{"a"}, at: 395})
	s.run(410)
	s.wantStates("r", map[string]controller.State{"a": controller.Present})
}

func TestWithoutNotificationsATransferIsDoneAfterItsTime(t *testing.T) {
	s := newScene(t, func(s *scene) { s.rules.Heard = false })
	s.silent = func() bool { return true }
	s.images["deb"] = large
	s.reserve("r", "deb", 7200, "a")
	s.run(105)
	s.wantStates("r", map[string]controller.State{"a": controller.Present})
	s.run(7000)
	s.wantCalls(asked{image: "deb", hosts: []string{"a"}})
	if o := s.ledger.stored.Transfers[0].Outcome; o != controller.TransferAssumed {
		t.Errorf("the outcome is %q", o)
	}
}

func TestOwnersAreToldBeforeTheStartThatTheImageIsLate(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = large
	s.speed = 10 * mega // a tenth of the expected rate
	s.reserve("r", "deb", 300, "a")
	s.run(299)
	s.wantStates("r", map[string]controller.State{"a": controller.Late})
	s.wantTold("r", "the image will be late on 1 of 1 hosts; a host without it downloads it when an instance boots")
	s.run(400)
	if n := len(s.live[0].Events); n != 1 {
		t.Errorf("the owner was told %d times", n)
	}
}

func TestWhatWasMeasuredIsExpected(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = large
	s.speed = 50 * mega
	s.reserve("one", "deb", 3600, "a")
	s.run(300)
	if rate := s.replicas[0].Known.Facts(s.now).Site.Repositories[0].Rate; rate < 45*mega || rate > 55*mega {
		t.Errorf("after a transfer at 50 MB/s, the expected rate is %v", rate)
	}
}

func TestAnImageThatWasDeletedIsTold(t *testing.T) {
	s := newScene(t, func(s *scene) { s.rules.Strategy = staging.JIT })
	s.images["deb"] = large
	s.reserve("r", "deb", 7200, "a")
	s.run(100)
	delete(s.images, "deb")
	s.run(705)
	s.wantTold("r", "the image was deleted: 1 of 1 hosts do not have it, and instances cannot boot from it there")
	s.wantStates("r", map[string]controller.State{"a": controller.Refused})
	s.run(7100)
	s.wantCalls()
}

func TestAHostThatSleepsIsAskedWhenItIsAwake(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = large
	s.reserve("r", "deb", 3600, "a")
	s.hosts[0].Power = inventory.PowerSleeping
	s.run(100)
	s.wantCalls()
	s.wantStates("r", map[string]controller.State{"a": controller.Held})
	s.hosts[0].Power = inventory.PowerOn
	s.run(105)
	s.wantCalls(asked{image: "deb", hosts: []string{"a"}, at: 105})
	s.wantTold("r")
}

func TestACloudThatCannotBeAskedIsAskedAgainWhileThereIsTime(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = large
	s.reserve("r", "deb", 20*3600, "a", "b")
	s.upon = func(asked) (bool, error) { return false, fault.New(fault.Unavailable, "never: Nova is away") }
	s.step(0)
	s.wantStates("r", map[string]controller.State{"a": controller.Held, "b": controller.Held})
	s.run(250)
	s.wantTold("r") // too early for a remark
	both := []string{"a", "b"}
	s.wantCalls(asked{image: "deb", hosts: both}, asked{image: "deb", hosts: both, at: 30}, asked{image: "deb", hosts: both, at: 60},
		asked{image: "deb", hosts: both, at: 120}, asked{image: "deb", hosts: both, at: 240})
	s.run(10 * 3600)
	s.wantTold("r", "the image could not be put on 2 of 2 hosts so far; a host without it downloads it when an instance boots")
	if n := len(s.ledger.stored.Transfers); n != 2 {
		t.Errorf("after the outage there are %d transfers, want one for each host", n)
	}
	s.upon = nil
	s.run(10*3600 + 600)
	s.wantStates("r", map[string]controller.State{"a": controller.Present, "b": controller.Present})
}

func TestAHostThatIsLeftOutOfACallFailsAlone(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = 1000 * mega
	s.reserve("r", "deb", 20*3600, "a", "bad", "c")
	s.upon = func(a asked) (bool, error) {
		if !slices.Contains(a.hosts, "bad") {
			return true, nil
		}
		rest := slices.DeleteFunc(slices.Clone(a.hosts), func(host string) bool { return host == "bad" })
		s.carryOut(a.call, a.image, rest)
		return false, &controller.LeftOut{Hosts: map[string]error{"bad": fault.New(fault.NotFound, "Nova does not know it")}}
	}
	s.run(10)
	s.wantStates("r", map[string]controller.State{"a": controller.Transferring, "bad": controller.Refused, "c": controller.Transferring})
	s.run(1000)
	s.wantStates("r", map[string]controller.State{"a": controller.Present, "bad": controller.Refused, "c": controller.Present})
}

// A call occupies the channel for two minutes at most before a more urgent one.
func TestACallIsShortEnoughToGiveWay(t *testing.T) {
	s := newScene(t)
	s.images["deb"], s.images["new"] = large, 1000*mega
	hosts := make([]string, 32)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("h%02d", i)
	}
	s.reserve("tomorrow", "deb", 20*3600, hosts...)
	s.run(10)
	if len(s.calls) != 1 || len(s.calls[0].hosts) != 2 {
		t.Fatalf("the calls were %+v", s.calls)
	}
	s.reserve("now", "new", 400, "z")
	s.run(400)
	s.wantStates("now", map[string]controller.State{"z": controller.Present})
}

func TestSmallImagesAreBegunAsFastAsTheyCome(t *testing.T) {
	s := newScene(t)
	for n := range 80 { // each takes a second
		image := fmt.Sprint("image-", n)
		s.images[image] = 100 * mega
		s.reserve(fmt.Sprint("r", n), image, 200, fmt.Sprint("h", n))
	}
	s.speed = 200 * mega
	s.run(200)
	for _, r := range s.live {
		if !s.has[r.Image+"/"+r.HostNames()[0]] {
			t.Errorf("%s has not arrived", r.Image)
		}
	}
}

// The notification for the first of two hosts was due after 360 s, for the second after 660 s.
func TestACallOfWhichNothingIsHeardDoesNotHoldUpOthers(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = large
	s.reserve("r", "deb", 20*3600, "a", "b")
	s.upon = func(asked) (bool, error) { return false, errors.New("no answer") }
	s.step(0)
	s.upon = nil
	s.run(355)
	s.wantStates("r", map[string]controller.State{"a": controller.Transferring, "b": controller.Transferring})
	s.run(365)
	for _, o := range s.ledger.stored.Transfers {
		if want := map[string]controller.Outcome{"a": controller.TransferFailed, "b": controller.TransferLost}[o.Host]; o.Outcome != want {
			t.Errorf("%s is %q, want %q: %s", o.Host, o.Outcome, want, o.Detail)
		}
	}
	s.run(1000)
	s.wantStates("r", map[string]controller.State{"a": controller.Present, "b": controller.Present})
}

// slowGlance does not answer, or runs look during a call.
type slowGlance struct {
	*scene
	look func(ctx context.Context)
}

func (g slowGlance) Look(ctx context.Context, id string) (controller.Image, bool, error) {
	g.look(ctx)
	if ctx.Err() != nil {
		return controller.Image{}, false, ctx.Err()
	}
	return g.scene.Look(ctx, id)
}

func TestAGlanceThatHangsHoldsUpNothingThatIsKnown(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = large
	if _, err := s.replicas[0].Resolve(t.Context(), "deb", "p"); err != nil {
		t.Fatal(err)
	}
	s.reserve("r", "deb", 3600, "a")
	s.reserve("other", "unknown", 3600, "b")
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	o := s.options("slow")
	o.Glance = slowGlance{s, func(context.Context) {
		looks++
		cancel() // as at the end of the time limit
	}}
	s.reserve("third", "unknown too", 3600, "b")
	s.live[2].Image = "unknown-too"
	if err := controller.New(o).Step(ctx); err == nil {
		t.Error("the step does not report Glance")
	}
	s.wantCalls(asked{image: "deb", hosts: []string{"a"}})
	if looks != 1 {
		t.Errorf("one step called Glance %d times", looks)
	}
}

func TestAStepForgetsNothingThatWasLearnedBesideIt(t *testing.T) {
	s := newScene(t)
	s.images["deb"], s.images["x"] = large, large
	s.reserve("r", "x", 3600, "a")
	o := s.options("r0")
	var c *controller.Controller
	o.Glance = slowGlance{s, func(ctx context.Context) {
		if _, err := c.Resolve(ctx, "deb", "p"); err != nil {
			t.Error(err)
		}
	}}
	c = controller.New(o)
	if err := c.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, known := c.Known.Facts(s.now).Image("deb"); !known {
		t.Error("the step has lost what was learned meanwhile")
	}
}

func TestATextOfBeforeTheUpgradeIsLeftAlone(t *testing.T) {
	s := newScene(t)
	s.reserve("old", "Debian 12 (any text)", 7200, "a", "b")
	s.run(7000)
	s.wantTold("old")
	s.wantCalls()
	if got := s.replicas[0].Of(&s.live[0]); got != nil || len(s.ledger.stored.Images) > 0 {
		t.Errorf("the reservation's images are %+v", got)
	}
}

// Between two steps, the plan of the last one answers all readers.
func TestAPlanIsLaidOutOnceForAllWhoAsk(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = large
	s.reserve("r", "deb", 3600, "a", "b")
	o := s.options("r0")
	plans := 0
	o.Demands = func(f *staging.Facts, live []reservation.Reservation) []staging.Demand {
		plans++
		return planning.Demands(f, live)
	}
	c := controller.New(o)
	for range 2 { // the first step begins a transfer
		if err := c.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	plans = 0
	for range 10 {
		if len(c.Of(&s.live[0])) != 2 || c.Short() != 0 || len(c.Overview()) != 2 {
			t.Error("the plan is wrong")
		}
	}
	if plans != 0 {
		t.Errorf("%d more plans were made", plans)
	}
	late := s.reserve("new", "deb", 7200, "c")
	if got := c.Of(late); len(got) != 1 || got[0].State != controller.Scheduled || plans != 1 {
		t.Errorf("a newer reservation is at %+v, with %d more plans", got, plans)
	}
}

func TestAReplicaThatTakesOverKnowsWhatTheCloudSaid(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = large
	s.reserve("r", "deb", 3600, "a")
	s.step(0)
	s.crash(0) // from now on the other replica has the lease
	s.run(110)
	s.wantStates("r", map[string]controller.State{"a": controller.Present})
	s.wantCalls(asked{image: "deb", hosts: []string{"a"}})
}

func TestAWordAboutAnotherCallIsBelievedWhereItIsGood(t *testing.T) {
	for name, tc := range map[string]struct {
		word controller.Word
		want controller.State
	}{
		"cached":             {controller.Word{Call: "req-other", Host: "a", Cached: []string{"deb"}}, controller.Present},
		"failed":             {controller.Word{Call: "req-other", Host: "a", Failed: []string{"deb"}}, controller.Transferring},
		"failed, of no call": {controller.Word{Host: "a", Failed: []string{"deb"}}, controller.Refused},
		"another image":      {controller.Word{Host: "a", Cached: []string{"x"}, Failed: []string{"y"}}, controller.Transferring},
		"another host":       {controller.Word{Host: "b", Cached: []string{"deb"}}, controller.Transferring},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.images["deb"] = large
			s.reserve("r", "deb", 3600, "a")
			s.step(0)
			s.replicas[0].Hear(tc.word)
			s.step(1)
			s.wantStates("r", map[string]controller.State{"a": tc.want})
		})
	}
}

func TestOnlyAWordOfATransferUnderWayHasTheControllerLookAtOnce(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = large
	s.reserve("r", "deb", 3600, "a")
	s.step(0)
	c := s.replicas[0]
	for _, w := range []controller.Word{{Host: "a", Cached: []string{"x"}}, {Host: "b", Cached: []string{"deb"}}, {Host: "a"}} {
		if c.Hear(w); len(c.Job().Wake) != 0 {
			t.Errorf("the controller plans at once for %+v", w)
		}
	}
	if c.Hear(controller.Word{Host: "a", Failed: []string{"deb"}}); len(c.Job().Wake) != 1 {
		t.Error("the controller does not plan at once for a word about its own transfer")
	}
}

func TestWithoutGlanceImagesAreOnlyKept(t *testing.T) {
	s := newScene(t)
	s.glance = controller.ErrNoGlance
	id, err := s.replicas[0].Resolve(context.Background(), "debian 12", "p")
	if id != "debian 12" || err != nil {
		t.Errorf("got %q: %v", id, err)
	}
	s.reserve("r", "debian 12", 3600, "a")
	s.run(100)
	s.wantCalls()
	s.wantTold("r")
}

func TestAnImageThatIsLargerThanThePoolIsRefused(t *testing.T) {
	s := newScene(t, func(s *scene) { s.rules.Limit = large - 1 })
	s.images["deb"] = large
	if _, err := s.replicas[0].Resolve(context.Background(), "deb", "p"); fault.Of(err).Field != "image" || !strings.Contains(err.Error(), "pool_limit") {
		t.Errorf("got %v", err)
	}
	s.glance = errors.New("away")
	if _, err := s.replicas[0].Resolve(context.Background(), "deb", "p"); !errors.Is(err, s.glance) {
		t.Errorf("got %v", err)
	}
}

//make:test-drawn
func TestAnImageIsKnownToTheFactsOnceItWasAskedFor(t *testing.T) {
	s := newScene(t)
	s.images["deb"] = large
	if _, known := s.replicas[0].Known.Facts(s.now).Image("deb"); known {
		t.Error("the image is known before the first request")
	}
	if id, err := s.replicas[0].Resolve(context.Background(), "deb", "p"); id != "deb" || err != nil {
		t.Fatalf("%q: %v", id, err)
	}
	if i, known := s.replicas[0].Known.Facts(s.now).Image("deb"); !known || i.Size != large {
		t.Errorf("the image is %+v", i)
	}
	s.step(1)
	if _, known := s.replicas[1].Known.Facts(s.now).Image("deb"); !known {
		t.Error("another replica does not know the image")
	}
	s.run(2 * 86_400)
	if len(s.ledger.stored.Images) > 0 {
		t.Error("the image is remembered although no reservation needs it")
	}
}

func TestThereIsNoOverviewOfTimesThatNeverCome(t *testing.T) {
	s := newScene(t, func(s *scene) { s.rules.Lifetime = 0 })
	s.images["deb"] = large
	s.reserve("r", "deb", 3600, "a", "b")
	s.run(110)
	list := s.replicas[1].Overview()
	if len(list) != 2 || list[0].State != controller.Present || list[0].Until != span.Forever || list[1].State != controller.Transferring {
		t.Errorf("the overview is %+v", list)
	}
}

func TestAHostThatJoinsAReservationThatHasBegunIsSentItsImage(t *testing.T) {
	s := newScene(t, func(s *scene) { s.rules.Retries = 1 })
	s.images["deb"] = large
	r := s.reserve("r", "deb", 600, "a")
	s.run(1000)
	s.hosts = append(s.hosts, inventory.Host{Name: "b"}, inventory.Host{Name: "bad"})
	s.broken = func(host string) bool { return host == "bad" }
	for _, host := range []string{"b", "bad"} {
		r.Claims = append(r.Claims, reservation.Claim{Host: host, Span: span.Span{Start: s.now, End: r.Span.End}})
	}
	s.run(1005)
	s.wantStates("r", map[string]controller.State{"a": controller.Present, "b": controller.Transferring, "bad": controller.Transferring})
	s.run(4000)
	s.wantStates("r", map[string]controller.State{"a": controller.Present, "b": controller.Present, "bad": controller.Refused})
	s.wantCalls(asked{image: "deb", hosts: []string{"a"}}, asked{image: "deb", hosts: []string{"b", "bad"}, at: 1005}, asked{image: "deb", hosts: []string{"bad"}, at: 1140})
}

// Nova removes the image from the host again if no instance uses it.
func TestAHostThatJoinedIsSentItsImageOnce(t *testing.T) {
	s := newScene(t, func(s *scene) { s.rules.Lifetime = 600 })
	s.images["deb"] = large
	r := s.reserve("r", "deb", 200, "a")
	s.run(1000)
	s.calls = nil
	s.hosts = append(s.hosts, inventory.Host{Name: "b"})
	r.Claims = append(r.Claims, reservation.Claim{Host: "b", Span: span.Span{Start: s.now, End: r.Span.End}})
	s.run(3700)
	s.wantCalls(asked{image: "deb", hosts: []string{"b"}, at: 1005})
}
