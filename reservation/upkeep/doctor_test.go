// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

func TestACloudThatIsAsItShouldBeIsHealthy(t *testing.T) {
	later := whole("r3", "b")
	later.Span = span.Span{Start: 20_000, End: 30_000}
	later.Claims[0].Span, later.Status = later.Span, reservation.Pending
	w := newPractice(t, whole("r1", "a"), half("r2", "b", "c"), later)
	w.lay()
	for id, project := range map[string]string{"r1": "p-r1", "r2": "p-r2"} {
		if host, err := w.cloud.boot("of-"+id, project, id, w.now); err != nil {
			t.Errorf("the owner cannot use %s on %s: %v", id, host, err)
		}
	}
	w.want("the findings are", w.found())
}

func TestWhatIsMissingIsFoundAndPutBack(t *testing.T) {
	w := newPractice(t, whole("r1", "a", "b"))
	w.lay()
	name := fence.AggregatePrefix + "r1"
	w.carry(fence.Step{Action: fence.RemoveHost, Aggregate: inventory.Aggregate{Name: fence.Aggregate}, Host: "a"})
	w.carry(fence.Step{Action: fence.RemoveTraits, Host: "b", Traits: []string{fence.OwnName("r1")}})
	w.carry(fence.Step{Action: fence.UnmarkAggregate, Aggregate: inventory.Aggregate{Name: name, Metadata: map[string]string{"trait:" + fence.Reserved: ""}}})
	w.carry(fence.Step{Action: fence.DeleteFlavor, Flavor: inventory.Flavor{ID: "r1"}})
	w.untrusted = "3 of 4 hosts are gone at once" // doubt never stops steps that add
	w.want("the findings are", w.found(), "missing almanac-fence", "missing b", "missing reservation:r1", "altered "+name)
	w.want("the fix", w.fix(), "missing almanac-fence: fixed", "missing b: fixed", "missing reservation:r1: fixed", "altered "+name+": fixed")
	w.want("afterwards there are", w.found())
}

func TestWhatAnEndedReservationHasLeftIsTakenAway(t *testing.T) {
	w := newPractice(t, whole("r1", "a"), half("r2", "b"))
	w.lay()
	w.set("r1", reservation.Ended)
	w.set("r2", reservation.Canceled)
	orphans := []string{
		"misplaced a", "misplaced b",
		"orphan_aggregate almanac-reservation-r1", "orphan_aggregate almanac-reservation-r2",
		"orphan_flavor reservation:r1", "orphan_flavor reservation:r2",
		"orphan_trait CUSTOM_ALMANAC_RESERVATION_R1", "orphan_trait CUSTOM_ALMANAC_SHARED",
		"orphan_class CUSTOM_ALMANAC_RESERVATION_R2",
	}
	w.want("the findings are", w.found(), orphans...)

	before := len(w.cloud.carried)
	for _, each := range w.plan() {
		if !strings.HasSuffix(each, ": planned") {
			t.Errorf("the plan contains %s", each)
		}
	}
	w.untrusted = "the hosts were last read 10m0s ago"
	for _, each := range append(w.plan(), w.fix()...) {
		if !strings.HasSuffix(each, ": refused") {
			t.Errorf("in doubt, %s", each)
		}
	}
	if len(w.cloud.carried) > before {
		t.Errorf("a plan, or a fix in doubt, carried out %v", w.cloud.carried[before:])
	}

	w.untrusted = ""
	w.fix()
	w.want("afterwards there are", w.found())
}

// While Almanac is at work there is no finding; two minutes later, what is left is one.
func TestARoutineStartOrEndIsNoFinding(t *testing.T) {
	for _, status := range []reservation.Status{reservation.Ending, reservation.Ended, reservation.Canceled} {
		w := newPractice(t, whole("r1", "a"), half("r2", "b"))
		w.lay()
		w.cloud.put(inventory.Instance{ID: "i", ProjectID: "p-r1", Host: "a", Status: "ACTIVE", Launched: 9_900, Reservation: "r1"})
		for _, id := range []string{"r1", "r2"} {
			r := w.stored[id]
			r.Status, r.Updated = status, w.now-1
			w.stored[id] = r
		}
		w.want("while reservations are "+string(status)+" the findings are", w.found())
		if w.now += 120; status != reservation.Ending && len(w.found()) == 0 {
			t.Errorf("the doctor never finds what a reservation that is %s has left", status)
		}
	}
	starting := whole("r1", "a")
	starting.Status, starting.Updated = reservation.Starting, 9_999
	w := newPractice(t, starting)
	w.want("while it starts the findings are", w.found())
	if w.now += 120; len(w.found()) == 0 {
		t.Error("the doctor never finds a start without progress")
	}
}

func TestTheNoticeOfAnEvictionThatIsOverIsFoundAndWithdrawn(t *testing.T) {
	const key = "evicted_at"
	w := newPractice(t)
	w.lay()
	put := func(id string, at span.Instant) {
		w.cloud.put(inventory.Instance{ID: id, ProjectID: "p", Host: "a", Status: "ACTIVE", Launched: 1,
			Metadata: map[string]string{key: at.Time().Format(time.RFC3339)}})
	}
	put("over", w.now-61)
	put("under way", w.now-60)
	put("to come", w.now+300)
	w.cloud.put(inventory.Instance{ID: "of its owner", ProjectID: "p", Host: "a", Status: "ACTIVE", Launched: 1, Metadata: map[string]string{key: "soon"}})
	var withdrawn []string
	w.doctor.Notices = &upkeep.Notices{Key: key, Lasts: 60, Withdraw: func(_ context.Context, i inventory.Instance) error {
		withdrawn = append(withdrawn, i.ID)
		return nil
	}}
	w.want("the findings are", w.found(), "stale_notice over")
	w.want("a report withdraws", withdrawn)
	w.want("the fix", w.fix(), "stale_notice over: fixed")
	w.want("the fix withdraws", withdrawn, "over")
}

// claims maps instances in ERROR that have an allocation in Placement to the error of their release.
type claims map[string]error

func (c claims) Unplaced(context.Context, span.Instant) (list []inventory.Instance, _ error) {
	for _, id := range slices.Sorted(maps.Keys(c)) {
		list = append(list, inventory.Instance{ID: id, ProjectID: "p", Status: "ERROR"})
	}
	return list, nil
}

func (c claims) Release(_ context.Context, id string) error {
	if c[id] != nil {
		return c[id]
	}
	delete(c, id)
	return nil
}

func TestWhatAnInstanceInErrorHasInPlacementIsFoundAndReleased(t *testing.T) {
	w := newPractice(t)
	w.lay()
	w.doctor.Claims = claims{"failed": nil, "rebuilt": fault.New(fault.Conflict, "it is ACTIVE by now")}
	w.want("the findings are", w.found(), "error_allocation failed", "error_allocation rebuilt")
	w.want("the fix", w.fix(), "error_allocation failed: fixed", "error_allocation rebuilt: failed")
	w.want("afterwards there is", w.found(), "error_allocation rebuilt")
}

func TestThingsOfAReservationThatNobodyKnowsAreFound(t *testing.T) {
	w := newPractice(t, whole("other", "a"))
	w.lay()
	delete(w.stored, "other") // as a reservation of another Almanac
	seen, err := w.doctor.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(seen.Findings, func(f upkeep.Finding) bool { return f.Kind == upkeep.OrphanGroup })
	if i < 0 || !strings.Contains(seen.Findings[i].Message, "has no record of reservation other") || !strings.Contains(seen.Findings[i].Remedy, "if no other Almanac") {
		t.Errorf("the findings are %v", seen.Findings)
	}
}

func TestAReservationThatAnotherReplicaHasJustBookedIsNoOrphan(t *testing.T) {
	w := newPractice(t, whole("r1", "a"))
	w.lay()
	w.doctor.Promises = newPractice(t) // this replica does not know the booking yet
	w.want("the findings are", w.found())
}

func TestAHostInTwoReservationsIsTakenOutOfTheWrongOne(t *testing.T) {
	w := newPractice(t, whole("r1", "a"), whole("r2", "b"))
	w.lay()
	w.carry(fence.Step{Action: fence.AddHost, Aggregate: inventory.Aggregate{Name: fence.AggregatePrefix + "r2"}, Host: "a"})
	if _, err := w.cloud.boot("i", "p-r1", "r1", w.now); err == nil {
		t.Fatal("the owner can use the host, so the test shows nothing")
	}
	w.want("the findings are", w.found(), "host_in_two_reservations a")
	w.want("the fix", w.fix(), "host_in_two_reservations a: fixed")
	if _, err := w.cloud.boot("i", "p-r1", "r1", w.now); err != nil {
		t.Errorf("after the fix, the owner cannot use the host: %v", err)
	}
}

func TestTwoReservationsOfInstancesMayShareAHost(t *testing.T) {
	w := newPractice(t, half("r1", "a"), half("r2", "a"))
	w.lay()
	w.want("the findings are", w.found())
}

func TestAStrangerIsReportedAndNotTouched(t *testing.T) {
	w := newPractice(t, whole("r1", "a"))
	w.cloud.addFlavor("m1.tiny", nil)
	if _, err := w.cloud.boot("early", "somebody", "m1.tiny", 5_000); err != nil {
		t.Fatal(err)
	}
	w.lay()
	w.cloud.put(inventory.Instance{ID: "by hint", ProjectID: "p-r1", Host: "a", Status: "ACTIVE", Launched: 9_900, Reservation: "r1"})
	w.want("the findings are", w.found(), "stranger early")
	w.want("the fix", w.fix(), "stranger early: ")
	if len(w.cloud.orders) > 0 {
		t.Errorf("the orders were %v", w.cloud.orders)
	}
}

func TestAPreemptibleStrangerIsNoFaultWhereHostsAreFilled(t *testing.T) {
	w := newPractice(t, whole("r1", "a"))
	w.lay()
	w.cloud.put(inventory.Instance{ID: "filler", ProjectID: "somebody", Host: "a", Status: "ACTIVE", Preemptible: true, Launched: 9_900})
	w.want("where they are not, the findings are", w.found(), "stranger filler")
	w.doctor.Fill = true
	w.want("where they are, the findings are", w.found())
	w.cloud.put(inventory.Instance{ID: "locked", ProjectID: "somebody", Host: "a", Status: "ACTIVE", Preemptible: true, Locked: true, Launched: 9_900})
	w.want("with one that makes no room the findings are", w.found(), "stranger locked")
	w.cloud.put(inventory.Instance{ID: "normal", ProjectID: "somebody", Host: "a", Status: "ACTIVE", Launched: 5_000})
	w.want("with a normal one the findings are", w.found(), "stranger locked", "stranger normal")
}

func TestAPreemptibleStrangerIsAFaultInMaintenance(t *testing.T) {
	r := whole("r1", "a")
	r.Maintenance = true
	w := newPractice(t, r)
	w.lay()
	w.doctor.Fill = true
	w.cloud.put(inventory.Instance{ID: "filler", ProjectID: "somebody", Host: "a", Status: "ACTIVE", Preemptible: true, Launched: 9_900})
	w.want("the findings are", w.found(), "stranger filler")
}

func TestASchedulerThatIgnoresTheFenceIsFoundByWhatItDoes(t *testing.T) {
	r := whole("r1", "a")
	r.Span = span.Span{Start: 11_000, End: 20_000}
	r.Claims[0].Span, r.Status, r.Created, r.Updated = r.Span, reservation.Pending, 5_000, 5_000
	w := newPractice(t, r)
	w.cloud.addFlavor("m1.tiny", nil)
	w.cloud.blind = true
	w.lay()
	if _, err := w.cloud.boot("before", "somebody", "m1.tiny", 7_300); err != nil { // the fence exists from 7,400 on
		t.Fatal(err)
	}
	w.want("of one that was there before, the findings are", w.found())
	if _, err := w.cloud.boot("after", "somebody", "m1.tiny", 7_600); err != nil {
		t.Fatal(err)
	}
	w.want("the findings are", w.found(), "fence_ignored nova-scheduler")
	w.want("the fix", w.fix(), "fence_ignored nova-scheduler: ")
}

func TestInstancesThatAnEndShouldHaveDealtWithAreToldAgain(t *testing.T) {
	for onEnd, want := range map[reservation.OnEnd][]string{
		reservation.OnEndDelete: {"leftover i"}, reservation.OnEndStop: {"leftover i"}, reservation.OnEndShelve: {"leftover i"}, reservation.OnEndLeave: {},
	} {
		t.Run(string(onEnd), func(t *testing.T) {
			r := whole("r1", "a")
			r.OnEnd = onEnd
			w := newPractice(t, r)
			w.lay()
			if _, err := w.cloud.boot("i", "p-r1", "r1", 9_100); err != nil {
				t.Fatal(err)
			}
			w.set("r1", reservation.Ended)
			w.lay()
			w.want("the findings are", w.found(), want...)
			w.untrusted = "in doubt"
			w.fix()
			if len(w.cloud.orders) > 0 {
				t.Errorf("in doubt the orders were %v", w.cloud.orders)
			}
			w.untrusted = ""
			w.fix()
			if len(w.cloud.orders) != len(want) {
				t.Errorf("the orders were %v", w.cloud.orders)
			}
			for range 5 {
				if _, err := w.cloud.On(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
			}
			w.want("afterwards there are", w.found())
		})
	}
}

func TestThatAllProjectsHaveVanishedIsNotBelieved(t *testing.T) {
	w := newPractice(t, whole("r1", "a"), whole("r2", "b"))
	w.lay()
	w.gone["p-r1"], w.gone["p-r2"] = true, true
	w.want("the plan", w.plan(), "vanished_project p-r1: ", "vanished_project p-r2: ")
	w.want("the fix", w.fix(), "vanished_project p-r1: ", "vanished_project p-r2: ")
	for id, r := range w.stored {
		if r.Status != reservation.Active {
			t.Errorf("reservation %s is %s", id, r.Status)
		}
	}
	delete(w.gone, "p-r2")
	w.want("with one of them there, the fix", w.fix(), "vanished_project p-r1: fixed")
}

func TestTheReservationsOfAVanishedProjectAreCanceledOnlyWhenTold(t *testing.T) {
	w := newPractice(t, whole("r1", "a"))
	w.lay()
	w.gone["p-r1"] = true
	w.want("the findings are", w.found(), "vanished_project p-r1")
	if w.stored["r1"].Status != reservation.Active {
		t.Error("the report alone cancels the reservation")
	}
	w.want("the fix", w.fix(), "vanished_project p-r1: fixed")
	if w.stored["r1"].Status != reservation.Canceled {
		t.Errorf("the reservation is %s", w.stored["r1"].Status)
	}
}

func TestTheLeaseOfAVanishedProjectIsCanceledAsAWhole(t *testing.T) {
	one, two := whole("r1", "a"), whole("r2", "b")
	two.ProjectID = one.ProjectID
	one.Membership.LeaseID, two.Membership.LeaseID = "lease", "lease"
	w := newPractice(t, one, two)
	w.lay()
	w.gone[one.ProjectID] = true
	for _, outcome := range w.fix() {
		if !strings.HasSuffix(outcome, ": fixed") {
			t.Errorf("the outcome is %s", outcome)
		}
	}
	for id, r := range w.stored {
		if r.Status != reservation.Canceled {
			t.Errorf("reservation %s is %s", id, r.Status)
		}
	}
}

func TestAPromisedHostThatHasLeftTheCloudIsReported(t *testing.T) {
	w := newPractice(t, whole("r1", "a", "gone"))
	w.lay()
	w.want("the findings are", w.found(), "vanished_host gone")
	w.want("the fix", w.fix(), "vanished_host gone: ")
}

func TestWithoutACloudTheDoctorExaminesWhatItCan(t *testing.T) {
	w := newPractice(t, whole("r1", "a", "gone"))
	w.doctor.Fence, w.doctor.Instances, w.doctor.Projects = nil, nil, nil
	w.want("the findings are", w.found(), "vanished_host gone")
	if seen, err := w.doctor.Examine(t.Context()); err != nil || seen.Cloud {
		t.Errorf("the doctor reports a cloud, or fails with %v", err)
	}
}

func TestWhatCannotBeMendedSaysWhyAndKeepsNothingElseBack(t *testing.T) {
	w := newPractice(t, whole("r1", "a"))
	w.lay()
	w.set("r1", reservation.Ended)
	w.cloud.fail[string(fence.RemoveTraits)] = fault.New(fault.Unavailable, "Placement answers 503")
	fixed := w.fix()
	w.want("the fix", fixed, "misplaced a: failed", "orphan_aggregate almanac-reservation-r1: fixed", "orphan_flavor reservation:r1: fixed",
		"orphan_trait CUSTOM_ALMANAC_RESERVATION_R1: failed")
	delete(w.cloud.fail, string(fence.RemoveTraits))
	w.fix()
	w.want("afterwards there are", w.found())
}

func TestACloudThatDoesNotAnswerIsNotExamined(t *testing.T) {
	w := newPractice(t, whole("r1", "a"))
	w.cloud.fail["layout"] = errors.New("connection refused")
	if _, err := w.doctor.Examine(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("the error is %v, want one with the advice to try again", err)
	}
	if _, err := w.doctor.Fix(t.Context(), booking.Caller{}); err == nil {
		t.Error("the doctor fixes although the cloud does not answer")
	}
}
