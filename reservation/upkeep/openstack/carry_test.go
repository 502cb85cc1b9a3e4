// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/nova"
	rest "github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
	"github.com/almanac-cloud/almanac/reservation/upkeep/openstack"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

var (
	_ upkeep.FenceBackend = (*openstack.Backend)(nil)
	_ upkeep.Instances    = (*openstack.Backend)(nil)
)

func TestEveryStepMayBeDoneTwiceAndThenTheLayoutIsAsDesired(t *testing.T) {
	for _, kind := range reservation.HostKinds {
		t.Run(string(kind), func(t *testing.T) {
			l := newLab(t)
			r := l.reservation(kind, 2)
			l.lay(r)
			done := map[fence.Action]bool{}
			for _, live := range []bool{false, true, false} {
				steps := l.steps(r, live)
				for _, step := range steps {
					done[step.Action] = true
					l.carry([]fence.Step{step, step})
				}
				if left := l.steps(r, live); len(left) > 0 {
					t.Errorf("live %v: after all steps, these steps remain: %+v", live, left)
				}
			}
			if len(done) < 8 {
				t.Errorf("only %v were carried out", done)
			}
			layout, err := l.cloud.Layout(t.Context())
			l.must(err)
			if text := fmt.Sprint(layout); strings.Contains(text, r.ID) || strings.Contains(text, ownName(r.ID)) {
				t.Errorf("something is left of reservation %s: %s", r.ID, text)
			}
		})
	}
}

// through returns a cloud whose Nova and Placement are at other addresses.
func through(t *testing.T, l *lab, computeAt, placementAt string) *openstack.Backend {
	t.Helper()
	u := labtest.Almanac
	session, err := keystone.NewSession(keystone.Connection{
		AuthURL: labtest.Keystone(t).AuthURL, Username: u.Name, Password: u.Password, ProjectName: u.Project,
	}, time.Now, slog.New(slog.DiscardHandler))
	l.must(err)
	wait := func(context.Context, time.Duration) error { return nil }
	compute, err := nova.New(session, rest.Options{Override: computeAt, Wait: wait})
	l.must(err)
	place, err := placement.New(session, rest.Options{Override: placementAt, Wait: wait})
	l.must(err)
	return openstack.New(openstack.Options{Compute: compute, Placement: place, Hosts: func() *inventory.Snapshot { return l.snapshot }, Now: clock})
}

func TestAStepWhoseAnswerIsLostIsDoneAgainWithoutHarm(t *testing.T) {
	l := newLab(t)
	compute, place := labtest.Interpose(t, l.admin.Endpoint("compute")), labtest.Interpose(t, l.admin.Endpoint("placement"))
	cloud := through(t, l, compute.URL, place.URL)
	for _, kind := range reservation.HostKinds {
		r := l.reservation(kind, 1)
		l.lay(r)
		l.carry(l.steps(r, false))
		for _, live := range []bool{true, false} {
			lost := 0
			for _, step := range l.steps(r, live) {
				for _, method := range []string{"POST", "PUT", "DELETE"} {
					compute.MeddleTimes(1, method+" /", labtest.Lose)
					place.MeddleTimes(1, method+" /", labtest.Lose)
				}
				for try := 0; ; try++ {
					err := cloud.Carry(t.Context(), step)
					if err == nil {
						break
					}
					lost++
					if !fault.Is(err, fault.Unavailable) || try == 6 {
						t.Fatalf("attempt %d: %v", try, err)
					}
				}
				compute.Relent()
				place.Relent()
			}
			if left := l.steps(r, live); len(left) > 0 || lost == 0 {
				t.Errorf("live %v: after %d lost answers, these steps remain: %+v", live, lost, left)
			}
		}
	}
}

func TestWhileTheCloudIsAwayEveryStepSaysWhatItIsAboutAndThatItMayBeTriedAgain(t *testing.T) {
	l := newLab(t)
	r := l.reservation(reservation.Instances, 1)
	cloud, host := through(t, l, "http://127.0.0.1:9", "http://127.0.0.1:9"), r.Claims[0].Host
	for _, step := range []fence.Step{
		{Action: fence.AddTraits, Reservation: r.ID, Host: host, Traits: []string{fence.Reserved}},
		{Action: fence.RemoveRooms, Reservation: r.ID, Host: host, Rooms: map[string]int64{ownName(r.ID): 0}},
		{Action: fence.RemoveHost, Reservation: r.ID, Host: host, Aggregate: inventory.Aggregate{ID: 1, Name: "x"}},
	} {
		err := cloud.Carry(t.Context(), step)
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), host) || !strings.Contains(err.Error(), r.ID) {
			t.Errorf("%s: got %v, want an unavailable fault with the host and the reservation", step.Action, err)
		}
	}
	_, layout := cloud.Layout(t.Context())
	_, on := cloud.On(t.Context(), host)
	_, of := cloud.Of(t.Context(), r)
	for call, err := range map[string]error{"layout": layout, "on": on, "of": of, "admit": cloud.Admit(t.Context(), r), "expel": cloud.Expel(t.Context(), r)} {
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: got %v, want an unavailable fault", call, err)
		}
	}
}

func TestOnlyTheOwnerMayUseTheFlavorsAndOnlyWhileHeIsAdmitted(t *testing.T) {
	l, ctx := newLab(t), t.Context()
	other := labtest.Keystone(t).REST(t, labtest.Demo2)
	r := l.reservation(reservation.Hosts, 1)
	if err := l.cloud.Admit(ctx, r); !fault.Is(err, fault.NotFound) {
		t.Errorf("admitted before the flavor exists: %v", err)
	}
	l.must(l.cloud.Expel(ctx, r))
	l.lay(r)
	flavors := []string{r.ID, r.ID + "-small"}
	open := func() bool {
		var is struct {
			Extra map[string]string `json:"extra_specs"`
		}
		l.admin.Must("GET", "compute", "/flavors/"+r.ID+"/os-extra_specs", nil, &is)
		return is.Extra["trait:"+fence.Closed] == ""
	}
	if open() {
		t.Error("the flavor is open before the owner is admitted")
	}
	sees := func(who *labtest.REST) (seen []string) {
		for _, id := range flavors {
			if who.Do("GET", "compute", "/flavors/"+id, nil, nil) == http.StatusOK {
				seen = append(seen, id)
			}
		}
		return seen
	}
	for _, admitted := range []bool{true, false} {
		for range 2 {
			if admitted {
				l.must(l.cloud.Admit(ctx, r))
			} else {
				l.must(l.cloud.Expel(ctx, r))
			}
		}
		if !open() {
			t.Errorf("admitted %v: the flavor is closed", admitted)
		}
		if own := sees(l.owner); admitted && !slices.Equal(own, flavors) || !admitted && len(own) > 0 {
			t.Errorf("admitted %v: the owner sees %v", admitted, own)
		}
		if others := sees(other); len(others) > 0 {
			t.Errorf("admitted %v: another project sees %v", admitted, others)
		}
	}
}

func TestAfterAHostThatHasLeftTheInventoryIsClearedUpToo(t *testing.T) {
	for _, kind := range reservation.HostKinds {
		l := newLab(t)
		r := l.reservation(kind, 1)
		l.lay(r)
		l.snapshot, _ = inventory.NewSnapshot(nil, nil, nil)
		l.carry(l.steps(r, false))
		layout, err := l.cloud.Layout(t.Context())
		l.must(err)
		if text := fmt.Sprint(layout); strings.Contains(text, r.ID) || strings.Contains(text, ownName(r.ID)) {
			t.Errorf("something is left of reservation %s: %s", r.ID, text)
		}
	}
}

func TestWhatIsToBeTakenFromWhatIsGoneIsGone(t *testing.T) {
	l, gone := newLab(t), "gone-"+uuid.NewString()
	aggregate, own := inventory.Aggregate{Name: fence.AggregatePrefix + gone}, ownName(gone)
	known := aggregate
	known.ID = 1 << 30
	for _, step := range []fence.Step{
		{Action: fence.UnmarkAggregate, Aggregate: inventory.Aggregate{ID: known.ID, Name: known.Name, Metadata: map[string]string{"a": "b"}}},
		{Action: fence.RemoveHost, Aggregate: aggregate, Host: l.free[0]},
		{Action: fence.RemoveHost, Aggregate: known, Host: gone},
		{Action: fence.DeleteAggregate, Aggregate: known},
		{Action: fence.RemoveTraits, Host: gone, Traits: []string{own}},
		{Action: fence.RemoveRooms, Host: gone, Rooms: map[string]int64{own: 0}},
		{Action: fence.DeleteFlavor, Flavor: inventory.Flavor{ID: gone}},
		{Action: fence.DeleteTrait, Name: own},
		{Action: fence.DeleteClass, Name: own},
	} {
		l.carry([]fence.Step{step})
	}
	for _, step := range []fence.Step{
		{Action: fence.MarkAggregate, Aggregate: aggregate},
		{Action: fence.AddHost, Aggregate: known, Host: l.free[0]},
		{Action: fence.AddTraits, Host: gone, Traits: []string{own}},
		{Action: fence.AddRooms, Host: gone, Rooms: map[string]int64{own: 1}},
		{Action: fence.MarkFlavor, Flavor: inventory.Flavor{ID: gone, ExtraSpecs: map[string]string{"a": "b"}}},
	} {
		if err := l.cloud.Carry(t.Context(), step); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), gone) {
			t.Errorf("%s: got %v, want a not found fault that names it", step.Action, err)
		}
	}
}

// taking returns the step that removes the reservation's rooms from a host.
func (l *lab) taking(r reservation.Reservation, host string) fence.Step {
	return fence.Step{Action: fence.RemoveRooms, Reservation: r.ID, Host: host, Rooms: map[string]int64{ownName(r.ID): 0}}
}
