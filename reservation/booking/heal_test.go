// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

const down = "its nova-compute is down"

// failing returns a Failed for these hosts.
func failing(hosts ...string) planning.Failed {
	return func(host string) (string, bool) { return down, slices.Contains(hosts, host) }
}

// heal heals a reservation and fails unless the reservation changed as wanted.
func (s *scene) heal(t tester, id string, failed planning.Failed, wantChanged bool) reservation.Reservation {
	t.Helper()
	r, changed, err := s.bookings.Heal(t.Context(), id, failed)
	if err != nil || changed != wantChanged {
		t.Fatalf("heal %s: changed %v, %v; want changed %v", id, changed, err, wantChanged)
	}
	return r
}

// told returns the entries of healing in the log of r.
func told(r reservation.Reservation) []string {
	var list []string
	for _, e := range r.Events {
		if e.Type == reservation.HealedEvent || e.Type == reservation.DegradedEvent || e.Type == reservation.RestoredEvent {
			list = append(list, fmt.Sprintf("%s: %s", e.Type, e.Detail))
		}
	}
	return list
}

func TestAFailedHostIsReplaced(t *testing.T) {
	whole, rest := span.Span{Start: at(100), End: at(200)}, span.Span{Start: at(150), End: at(200)}
	same, different := cpus(2, 3, 100, 200), cpus(2, 2, 100, 200)
	same.Affinity, different.Affinity = calendar.AffinitySame, calendar.AffinityDifferent
	for name, tc := range map[string]struct {
		req  reservation.Request
		now  int64
		want []reservation.Claim // a has failed
	}{
		"before the start for all its time": {during(2, 100, 200), 50, []reservation.Claim{{Host: "b", Span: whole}, {Host: "c", Span: whole}}},
		"after it from now on":              {during(2, 100, 200), 150, []reservation.Claim{{Host: "b", Span: whole}, {Host: "c", Span: rest}}},
		"instances beside their own": {cpus(2, 5, 100, 200), 150, []reservation.Claim{
			{Host: "b", Span: whole, Slices: 1}, {Host: "c", Span: rest, Slices: 4},
		}},
		"instances of one host together": {same, 150, []reservation.Claim{{Host: "b", Span: rest, Slices: 3}}},
		"instances of different hosts":   {different, 150, []reservation.Claim{{Host: "b", Span: whole, Slices: 1}, {Host: "c", Span: rest, Slices: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b", "c"))
			id := s.book(t, tc.req).ID
			s.passTo(t, at(tc.now))
			before := s.get(t, id)
			r := s.heal(t, id, failing("a"), true)
			if diff := cmp.Diff(tc.want, r.Claims); diff != "" || r.Degraded != "" || r.Status != before.Status {
				t.Errorf("%s, degraded %q; claims (-want +got):\n%s", r.Status, r.Degraded, diff)
			}
			if diff := cmp.Diff(r, s.get(t, id)); diff != "" || r.Version != before.Version+1 {
				t.Errorf("version %d after %d (-returned +stored):\n%s", r.Version, before.Version, diff)
			}
			s.check(t)
			s.book(t, only("a", during(1, max(tc.now, 100), 200))) // the failed host is free for other bookings
			s.heal(t, id, failing("a"), false)
		})
	}
}

// Hosts that are outside the pool, filtered out, busy, in trouble or failed are not chosen;
// among the others, the preferred host is.
func TestTheChoiceOfAReplacementIsThatOfABooking(t *testing.T) {
	s := newScene(t, named("a", "busy", "closed", "failed", "later", "short", "sick", "y", "z"), leading)
	s.host("closed").Reservable = false
	s.host("short").Capacity.VCPUs = 2
	s.host("y").InstanceCount = 1
	req := during(1, 100, 200)
	req.HostProperties = `[">=", "$vcpus", 4]`
	id := s.book(t, req).ID
	s.book(t, only("busy", during(1, 150, 160)))
	s.book(t, only("later", during(1, 199, 250)))
	s.host("sick").Problem = down
	s.observe(t)
	s.passTo(t, at(120))
	if diff := cmp.Diff([]string{"z"}, claimed(s.heal(t, id, failing("a", "failed"), true))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAHostThatMustBootReplacesOnlyWhereNoneIsAwake(t *testing.T) {
	for kind, req := range map[string]reservation.Request{"host": during(2, 100, 200), "instance": cpus(8, 2, 100, 200)} {
		t.Run(kind, func(t *testing.T) {
			hosts := named("a", "b", "c", "z")
			hosts[2].FlopsPerWatt, hosts[2].BootSeconds = 9, 30
			hosts[2].Power = inventory.PowerFailed
			s := newScene(t, hosts)
			id := s.book(t, req).ID
			s.host("c").Power = inventory.PowerSleeping
			s.observe(t)
			s.passTo(t, at(150))
			r := s.heal(t, id, failing("a", "b"), true)
			if diff := cmp.Diff([]string{"z", "c"}, r.HostNames()); diff != "" || r.Degraded != "" {
				t.Errorf("degraded %q; hosts (-want +got):\n%s", r.Degraded, diff)
			}
		})
	}
}

func TestHealingAsksForNoLimit(t *testing.T) {
	s := newScene(t, named("a", "b"))
	id := s.book(t, during(1, 1000, 2000)).ID
	s.bookings.Configure(planning.Limits{Duration: 1, StartAhead: 1, Hosts: 1, HostSeconds: 1}, s.options.Defaults)
	if diff := cmp.Diff([]string{"b"}, claimed(s.heal(t, id, failing("a"), true))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeReplacedIsDegradedUntilItIsWell(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	r := s.running(t, during(2, 100, 200))
	other := s.book(t, only("c", during(1, 150, 170))).ID
	missing := "host a is missing since it accepts no instances now; no free host can take its place"
	degraded := s.heal(t, r.ID, failing("a"), true)
	if degraded.Degraded != missing || !slices.Equal(claimed(degraded), []string{"b", "a"}) {
		t.Errorf("the reservation has %v, degraded %q", claimed(degraded), degraded.Degraded)
	}
	s.heal(t, r.ID, failing("a"), false)
	s.check(t)
	if got := s.heal(t, r.ID, failing(), true); got.Degraded != "" {
		t.Errorf("with host a back, degraded is %s", got.Degraded)
	}
	s.heal(t, r.ID, failing(), false)
	s.heal(t, r.ID, failing("a"), true)
	if _, err := s.bookings.Cancel(t.Context(), owner, other); err != nil {
		t.Fatal(err)
	}
	got := s.heal(t, r.ID, failing("a"), true)
	want := []string{
		"degraded: " + missing, "restored: all its hosts work again",
		"degraded: " + missing, "healed: host a was replaced since it accepts no instances now; instead: c",
	}
	if diff := cmp.Diff(want, told(got)); diff != "" || got.Degraded != "" {
		t.Errorf("degraded %q; log (-want +got):\n%s", got.Degraded, diff)
	}
	s.check(t)
}

func TestAHostThatComesAndGoesDoesNotFillTheLog(t *testing.T) {
	s := newScene(t, named("a"))
	r := s.running(t, during(1, 100, 10_000))
	for n := range int64(100) {
		s.passTo(t, at(200+n))
		s.heal(t, r.ID, failing("a"), true)
		s.heal(t, r.ID, failing(), true)
	}
	r = s.get(t, r.ID)
	last := r.Events[len(r.Events)-2:]
	if len(told(r)) != 20 || len(r.Events) != 23 || last[0].Type != reservation.DegradedEvent || last[0].Done != at(299) || last[1].Type != reservation.RestoredEvent {
		t.Errorf("%d of %d entries report healing, the last is %+v", len(told(r)), len(r.Events), last)
	}
}

func TestWhatCanBeReplacedIsWhereNotAllCan(t *testing.T) {
	for name, tc := range map[string]struct {
		req  reservation.Request
		want []string
	}{
		"hosts":                    {during(2, 100, 200), []string{"b", "c"}},
		"instances":                {cpus(2, 8, 100, 200), []string{"b×4", "c×4"}},
		"some instances of a host": {cpus(2, 6, 100, 200), []string{"b×2", "c×4"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b", "c"))
			s.host("c").Power = inventory.PowerFailed
			s.observe(t)
			r := s.running(t, tc.req)
			s.host("c").Power = inventory.PowerOn
			s.observe(t)
			r = s.heal(t, r.ID, failing("a", "b"), true)
			if diff := cmp.Diff(tc.want, claimed(r)); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			if log := told(r); len(log) != 2 || !strings.HasPrefix(log[0], "healed: host a was replaced") ||
				!strings.HasPrefix(log[1], "degraded: host b is missing") || r.Degraded == "" {
				t.Errorf("degraded %q, log %q", r.Degraded, log)
			}
			s.check(t)
		})
	}
}

// The log of the reservation does not name them either.
func TestATenantDoesNotLearnTheHostsOfAPendingReservation(t *testing.T) {
	causes := &causes{}
	s := newScene(t, named("host-1", "host-2", "host-3"), causes.keep)
	id := s.book(t, during(2, 100, 200)).ID
	s.heal(t, id, failing("host-1", "host-2"), true)
	r := s.heal(t, id, failing("host-1", "host-2"), false)
	if text := strings.Join(told(s.get(t, id)), " ") + r.Degraded; strings.Contains(text, "host-") || r.Degraded == "" {
		t.Errorf("the tenant reads %s", text)
	}
	last := causes.list[len(causes.list)-1]
	if last.Action != reservation.ActionHeal || !strings.Contains(last.Detail, "host-1 was replaced") || !strings.Contains(last.Detail, "host-2 is missing") {
		t.Errorf("the audit trail has %+v", last)
	}
	s.passTo(t, at(100))
	if r := s.heal(t, id, failing("host-1", "host-2"), true); !strings.Contains(r.Degraded, "host-2") {
		t.Errorf("while active, the tenant reads %s", r.Degraded)
	}
}

// causes are records that note the cause of each change.
type causes struct {
	booking.Records
	list []reservation.Cause
}

func (c *causes) keep(o *booking.Options) { c.Records, o.Records = o.Records, c }

func (c *causes) Commit(ctx context.Context, change booking.Commit) error {
	for _, r := range change.Revisions {
		c.list = append(c.list, r.Cause)
	}
	return c.Records.Commit(ctx, change)
}

func TestAFilterByWhatIsHiddenIsHealedToo(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	s.host("a").Properties = map[string]inventory.Value{"rack": inventory.StringValue("r1")}
	s.host("c").Properties = s.host("a").Properties
	s.observe(t)
	req := during(1, 100, 200)
	req.HostProperties = `["=", "$rack", "r1"]`
	r, err := s.bookings.Book(t.Context(), booking.Caller{ProjectID: "demo", SeesHidden: true}, req, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c"}, claimed(s.heal(t, r.ID, failing("a"), true))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFilterThatMeansNothingAnyMoreIsSaid(t *testing.T) {
	s := newScene(t, named("a", "b"))
	s.host("a").Properties = map[string]inventory.Value{"gpu": inventory.StringValue("a100")}
	s.observe(t)
	req := during(1, 100, 200)
	req.HostProperties = `["=", "$gpu", "a100"]`
	r := s.running(t, req)
	s.hosts = named("b")
	s.host("b").Properties = map[string]inventory.Value{"gpu": inventory.NumberValue(4)}
	s.observe(t)
	if r = s.heal(t, r.ID, failing("a"), true); !strings.Contains(r.Degraded, "Almanac cannot search for another host: host_properties") {
		t.Errorf("degraded: %s", r.Degraded)
	}
}
