// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// among returns a filter that only these hosts pass.
func among(hosts []string) string {
	if len(hosts) == 0 {
		return `["!=", 1, 1]`
	}
	return fmt.Sprintf(`["in", "$name", "%s"]`, strings.Join(hosts, `", "`))
}

func filtered(filter string) planning.Change { return planning.Change{HostProperties: &filter} }

// subsets returns all subsets of a list.
func subsets(list []string) [][]string {
	all := [][]string{nil}
	for _, one := range list {
		for _, part := range slices.Clone(all) {
			all = append(all, append(slices.Clone(part), one))
		}
	}
	return all
}

func both(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(one string) bool { return !slices.Contains(b, one) })
}

func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(one string) bool { return slices.Contains(b, one) })
}

// All scenes of three hosts: those that the reservation has, those that another has, those that pass the new filter, and
// the new quantity. Sets of names decide what is possible.
func TestANewFilterIsAcceptedWheneverThereAreHostsForIt(t *testing.T) {
	all := []string{"a", "b", "c"}
	for _, had := range subsets(all) {
		if len(had) == 0 {
			continue
		}
		for _, taken := range subsets(without(all, had)) {
			for _, active := range []bool{false, true} {
				s := newScene(t, named(all...))
				req := during(len(had), 100, 200)
				req.HostProperties = among(had)
				r := s.book(t, req)
				if len(taken) > 0 {
					req = during(len(taken), 100, 200)
					req.HostProperties = among(taken)
					s.book(t, req)
				}
				if active {
					s.passTo(t, at(150))
				}
				for _, pass := range subsets(all) {
					if slices.Equal(pass, had) {
						continue // the filter that it has
					}
					for quantity := range 4 {
						refilter(t, s, s.get(t, r.ID), filterChange{had, taken, pass, active, quantity})
					}
				}
			}
		}
	}
}

// filterChange is a change of the filter, to the hosts that pass it, and to a quantity; 0 means that it stays.
type filterChange struct {
	had, taken, pass []string
	active           bool
	quantity         int
}

// refilter offers the change and compares the answer with what the sets say. If it is accepted, a restarted service makes it.
func refilter(t *testing.T, s *scene, r reservation.Reservation, f filterChange) {
	t.Helper()
	c, want := filtered(among(f.pass)), len(f.had)
	if f.quantity > 0 {
		c.Quantity, want = &f.quantity, f.quantity
	}
	stay, room := both(f.had, f.pass), without(f.pass, f.taken)
	accepted, largest := len(room) >= want, len(room)
	if f.active && len(stay) < len(f.had) {
		accepted, largest = accepted && len(stay) >= want, len(stay)
	}
	plan, err := s.bookings.OfferChange(t.Context(), owner, r.ID, c)
	if diff := cmp.Diff(r, s.get(t, r.ID)); diff != "" {
		t.Fatalf("%+v: the offer changes it:\n%s", f, diff)
	}
	if !accepted {
		refused := refusal(t, err)
		if refused.LargestQuantity != largest || refused.EarliestStart != 0 && f.active {
			t.Fatalf("%+v: %+v, want the largest quantity %d", f, refused, largest)
		}
		gone := without(f.had, f.pass)
		if named := strings.Contains(refused.Message, "keeps its hosts, and "+strings.Join(gone, ", ")+" do"); named != (f.active && len(stay) < min(want, len(f.had))) {
			t.Fatalf("%+v: the refusal says %s", f, refused.Message)
		}
		return
	}
	if err != nil {
		t.Fatalf("%+v: %v", f, err)
	}
	var got []string
	for _, claim := range plan.Claims {
		got = append(got, claim.Host)
	}
	kept := both(got, stay)
	if len(got) != want || len(without(got, room)) > 0 || len(kept) < min(want, len(stay)) || plan.Matched != len(f.pass) {
		t.Fatalf("%+v: it gets %v, and %d match", f, got, plan.Matched)
	}
}

// What it gets later passes the new filter too.
func TestGrowthHealingAndLaterChangesUseTheNewFilter(t *testing.T) {
	s := newScene(t, named("a", "b", "c", "d", "e"))
	id := s.book(t, during(1, 100, 200)).ID
	if r := s.change(t, id, filtered(among([]string{"a", "c", "e"}))); !slices.Equal(claimed(r), []string{"a"}) {
		t.Errorf("it moves to %v although its host passes", claimed(r))
	}
	if r := s.change(t, id, filtered(among([]string{"c", "e"}))); !slices.Equal(claimed(r), []string{"c"}) {
		t.Errorf("it is on %v, want c", claimed(r))
	}
	s.restart(t)
	s.passTo(t, at(150))
	if r := s.heal(t, id, failing("c"), true); !slices.Contains(claimed(r), "e") {
		t.Errorf("healed, it is on %v, want e", claimed(r))
	}
	if _, err := s.bookings.Change(t.Context(), owner, id, quantity(3)); refusal(t, err).LargestQuantity != 2 {
		t.Errorf("growth: %v", err)
	}
	s.change(t, id, filtered(`""`))
	if r := s.change(t, id, quantity(3)); r.HostProperties != "" || r.Quantity != 3 {
		t.Errorf("without a filter it has %d of %q", r.Quantity, r.HostProperties)
	}
	s.check(t)
}

// A filter in another form is the same filter.
func TestTheSameFilterInAnotherFormIsNoChange(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.book(t, only("b", during(1, 100, 200)))
	for _, form := range []string{`[ "=","$name","b" ]`, `"[\"=\", \"$name\", \"b\"]"`, `["=", "\u0024name", "b"]`} {
		if got := s.change(t, r.ID, filtered(form)); got.Version != r.Version {
			t.Errorf("%s is stored as a change: %+v", form, got)
		}
	}
	if got := s.change(t, r.ID, filtered(`["==", "$name", "b"]`)); got.Version != r.Version+1 || claimed(got)[0] != "b" {
		t.Errorf("another filter: %+v", got)
	}
}

// For who may not see a hidden property, a filter with it is one with a property that does not exist.
func TestAHiddenPropertyOfANewFilterDoesNotExist(t *testing.T) {
	hosts := named("a", "b")
	for i := range hosts {
		hosts[i].Properties = map[string]inventory.Value{"rack": inventory.StringValue("r" + hosts[i].Name)}
	}
	for _, now := range []int64{50, 150} {
		s := newScene(t, hosts)
		id := s.book(t, only("a", during(1, 100, 200))).ID
		s.passTo(t, at(now))
		for _, value := range []string{"ra", "rb", "r"} {
			answer := func(property string) string {
				_, err := s.bookings.Change(t.Context(), owner, id, filtered(fmt.Sprintf(`["=", "$%s", %q]`, property, value)))
				return strings.ReplaceAll(fmt.Sprintf("%+v", *refusal(t, err)), property, "")
			}
			if hidden, absent := answer("rack"), answer("nothing"); hidden != absent || !strings.Contains(hidden, "no host has a property $") {
				t.Errorf("%s is %s, and an absent one %s", value, hidden, absent)
			}
		}
		sees := booking.Caller{ProjectID: owner.ProjectID, SeesHidden: true}
		if _, err := s.bookings.Change(t.Context(), sees, id, filtered(`["=", "$rack", "ra"]`)); err != nil {
			t.Error(err)
		}
	}
}

// A filter that would release hosts with instances is refused as any other change, and the refusal proposes no quantity
// that would.
func TestANewFilterReleasesNoHostWithInstances(t *testing.T) {
	s := newScene(t, named("a", "b"))
	id := s.book(t, during(2, 100, 200)).ID
	s.passTo(t, at(150))
	s.host("b").Instances = []inventory.Instance{{ID: "i", Host: "b", Reservation: id}}
	s.host("b").InstanceCount = 1
	s.observe(t)
	c := filtered(among([]string{"a"}))
	_, err := s.bookings.Change(t.Context(), owner, id, c)
	if got := refusal(t, err); got.LargestQuantity != 0 || got.Constraint != reservation.HostsMatching {
		t.Errorf("%+v", got)
	}
	c.Quantity = new(1)
	if _, err := s.bookings.Change(t.Context(), owner, id, c); !says(fault.Conflict, "delete its instances on host b first: i")(err) {
		t.Errorf("with one host: %v", err)
	}
}
