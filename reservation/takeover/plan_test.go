// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/takeover"
)

// The time of the tests: Blazar's hosts 1 to 3 are a, b and c, with 8 vCPUs each.
const now = span.Instant(1000)

// query is what the owners of hosts ask for.
const query = `[">=", "$vcpus", "4"]`

func cloud(t tester) *inventory.Snapshot {
	t.Helper()
	var hosts []inventory.Host
	for _, name := range []string{"a", "b", "c"} {
		hosts = append(hosts, inventory.Host{Name: name, Capacity: resource.Vector{VCPUs: 8, MemoryMB: 8000, DiskGB: 80}})
	}
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type tester interface {
	Helper()
	Fatal(args ...any)
}

// blazar is a database of Blazar under construction.
type blazar struct{ takeover.Database }

func newBlazar() *blazar {
	b := &blazar{}
	for i, name := range []string{"a", "b", "c"} {
		b.Hosts = append(b.Hosts, takeover.Host{ID: fmt.Sprint(i + 1), Service: name, Hypervisor: name + ".example", VCPUs: 8, MemoryMB: 8000, DiskGB: 80})
	}
	return b
}

// lease adds a lease with its events; created later than those before it.
func (b *blazar) lease(id, status string, start, end span.Instant) *blazar {
	b.Leases = append(b.Leases, takeover.Lease{
		ID: id, Name: "name of " + id, UserID: "user", ProjectID: "project", Start: start, End: end, Status: status, Created: span.Instant(len(b.Leases) + 1),
	})
	events := map[string][2]string{"PENDING": {"UNDONE", "UNDONE"}, "ACTIVE": {"DONE", "UNDONE"}, "TERMINATED": {"DONE", "DONE"}, "STARTING": {"IN_PROGRESS", "UNDONE"}, "TERMINATING": {"DONE", "IN_PROGRESS"}, "ERROR": {"DONE", "ERROR"}}[status]
	if events[0] != "" {
		b.Events = append(b.Events, takeover.Event{LeaseID: id, Type: "start_lease", Time: start, Status: events[0]},
			takeover.Event{LeaseID: id, Type: "before_end_lease", Time: end - 10, Status: events[1]},
			takeover.Event{LeaseID: id, Type: "end_lease", Time: end, Status: events[1]})
	}
	return b
}

// hosts adds a reservation of hosts to the last lease.
func (b *blazar) hostsOf(id, countRange string, hosts ...string) *blazar {
	b.Reservations = append(b.Reservations, takeover.Reservation{
		ID: id, LeaseID: b.Leases[len(b.Leases)-1].ID, Type: "physical:host", Hosts: &takeover.HostTerms{CountRange: countRange, ResourceProperties: query},
	})
	return b.allocate(id, hosts...)
}

// instances adds a reservation of instances of 2 vCPUs to the last lease.
func (b *blazar) instances(id string, hosts ...string) *blazar {
	b.Reservations = append(b.Reservations, takeover.Reservation{
		ID: id, LeaseID: b.Leases[len(b.Leases)-1].ID, Type: "virtual:instance",
		Instances: &takeover.InstanceTerms{VCPUs: 2, MemoryMB: 100, DiskGB: 1, Amount: len(hosts)},
	})
	return b.allocate(id, hosts...)
}

func (b *blazar) allocate(reservation string, hosts ...string) *blazar {
	for _, host := range hosts {
		b.Allocations = append(b.Allocations, takeover.Allocation{ReservationID: reservation, HostID: host})
	}
	return b
}

func (b *blazar) plan(t tester, change func(*takeover.Options)) takeover.Plan {
	t.Helper()
	hosts := cloud(t)
	o := takeover.Options{Now: now, Hosts: hosts}
	if change != nil {
		change(&o)
	}
	names := takeover.NameHosts(b.Hosts, func(name string) bool { _, there := hosts.Index(name); return there })
	return takeover.New(b.Database, names, o)
}

// said returns the findings as "kind of lease", in order.
func said(p takeover.Plan) (list []string) {
	for _, f := range p.Findings {
		list = append(list, strings.TrimSpace(string(f.Kind)+" "+f.Lease))
	}
	return list
}

// taken returns the leases as "id: status of each reservation on its hosts".
func taken(p takeover.Plan) (list []string) {
	for _, l := range p.Leases {
		text := l.ID + ":"
		for _, r := range l.Reservations {
			text += " " + string(r.Status)
			for _, c := range r.Claims {
				text += " " + c.Host
				if c.Slices > 0 {
					text += fmt.Sprint("*", c.Slices)
				}
			}
		}
		list = append(list, text)
	}
	return list
}

func TestAReservationIsTakenOverAsBlazarHasPromisedIt(t *testing.T) {
	p := newBlazar().lease("l", "ACTIVE", 500, 2000).hostsOf("r", "1-3", "2", "1").plan(t, nil)
	want := []reservation.LeaseRecord{{
		Lease: reservation.Lease{
			ID: "l", ProjectID: "project", UserID: "user", Name: "name of l", Span: span.Span{Start: 500, End: 2000}, BeforeEnd: 1990, Created: 1, Version: 1,
		},
		Reservations: []reservation.Reservation{{
			ID: "r", ProjectID: "project", UserID: "user", Status: "active", Span: span.Span{Start: 500, End: 2000}, Created: 1, Updated: now, Version: 1,
			Terms: reservation.Terms{
				Name: "name of l", Kind: "host", Quantity: 2, HostProperties: `[">=","$vcpus",4]`, Policy: "first-fit", OnEnd: "delete", BeforeEnd: 10,
			},
			Membership: reservation.Membership{LeaseID: "l", Min: 1, Max: 3, ResourceProperties: query},
			Claims:     []reservation.Claim{{Host: "a", Span: span.Span{Start: 500, End: 2000}}, {Host: "b", Span: span.Span{Start: 500, End: 2000}}},
			Events: []reservation.Event{
				{Type: "created", Time: 1, State: "done", Done: 1, Detail: "taken over from Blazar"},
				{Type: "start", Time: 500, State: "done", Done: 500},
				{Type: "before_end", Time: 1990, State: "pending"},
				{Type: "end", Time: 2000, State: "pending"},
			},
		}},
	}}
	if d := cmp.Diff(want, p.Leases); d != "" || len(p.Findings) > 0 {
		t.Errorf("(-want +got):\n%s%v", d, p.Findings)
	}
}

func TestTheStatusFollowsFromTheEventsOfTheLease(t *testing.T) {
	for status, want := range map[string]struct {
		taken []string
		said  []string
	}{
		"PENDING":     {[]string{"l: pending a*2 b*1"}, nil},
		"ACTIVE":      {[]string{"l: active a*2 b*1"}, nil},
		"STARTING":    {[]string{"l: pending a*2 b*1"}, nil},
		"TERMINATING": {[]string{"l: active a*2 b*1"}, nil},
		"TERMINATED":  {nil, []string{"over l"}},
		"ERROR":       {nil, []string{"error l"}},
		"CREATING":    {nil, []string{"unfinished l"}},
		"DELETING":    {nil, []string{"unfinished l"}},
		"UPDATING":    {nil, []string{"unreadable l"}}, // here without events
	} {
		p := newBlazar().lease("l", status, 2000, 3000).instances("r", "1", "2", "1").plan(t, nil)
		if got := taken(p); !slices.Equal(got, want.taken) || !slices.Equal(said(p), want.said) {
			t.Errorf("%s: %v, %v", status, got, p.Findings)
		}
	}
}

func TestWhatIsOverdueIsDueAtOnce(t *testing.T) {
	p := newBlazar().lease("start", "PENDING", 900, 2000).hostsOf("r1", "1-1", "1").
		lease("end", "ACTIVE", 100, 950).hostsOf("r2", "1-1", "2").plan(t, nil)
	if want := []string{"overdue start", "overdue end", "overdue end"}; !slices.Equal(said(p), want) || p.Stopped() > 0 {
		t.Errorf("%v", p.Findings)
	}
	if want := []string{"end: active b", "start: pending a"}; !slices.Equal(taken(p), want) {
		t.Errorf("%v", taken(p))
	}
}

func TestOfTwoLeasesThatDoNotFitTheLaterOneStopsTheTakeoverOrIsLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		b     *blazar
		taken []string
		said  []string
	}{
		"whole hosts": {
			newBlazar().lease("early", "PENDING", 3000, 4000).hostsOf("r1", "1-1", "1").lease("late", "PENDING", 2000, 3001).hostsOf("r2", "1-2", "2", "1"),
			[]string{"early: pending a"}, []string{"double-booked late"},
		},
		"one after the other": {
			newBlazar().lease("l1", "PENDING", 3000, 4000).hostsOf("r1", "1-1", "1").lease("l2", "PENDING", 2000, 3000).hostsOf("r2", "1-1", "1"),
			[]string{"l2: pending a", "l1: pending a"}, nil,
		},
		"a host and instances": {
			newBlazar().lease("early", "ACTIVE", 100, 4000).instances("r1", "1").lease("late", "PENDING", 2000, 3001).hostsOf("r2", "1-1", "1"),
			[]string{"early: active a*1"}, []string{"double-booked late"},
		},
		"instances": {
			newBlazar().lease("early", "ACTIVE", 100, 4000).instances("r1", "1", "1", "1").lease("late", "ACTIVE", 200, 3001).instances("r2", "1", "1"),
			[]string{"early: active a*3"}, []string{"double-booked late"},
		},
		"instances that fill the host": {
			newBlazar().lease("l1", "ACTIVE", 100, 4000).instances("r1", "1", "1").lease("l2", "ACTIVE", 200, 3001).instances("r2", "1", "1"),
			[]string{"l1: active a*2", "l2: active a*2"}, nil,
		},
		"two reservations of one lease": {
			newBlazar().lease("l", "PENDING", 3000, 4000).hostsOf("r1", "1-1", "1").hostsOf("r2", "1-1", "1").lease("next", "PENDING", 3000, 4000).hostsOf("r3", "1-1", "1"),
			[]string{"next: pending a"}, []string{"double-booked l"},
		},
	} {
		refused, left := tc.b.plan(t, nil), tc.b.plan(t, func(o *takeover.Options) { o.Leave = []takeover.Kind{takeover.DoubleBooked} })
		if !slices.Equal(taken(left), tc.taken) || !slices.Equal(said(left), tc.said) || refused.Stopped() != len(tc.said) || left.Stopped() > 0 {
			t.Errorf("%s: %v, %v", name, taken(left), refused.Findings)
		}
	}
}

func TestADoubleBookingNamesBothLeases(t *testing.T) {
	p := newBlazar().lease("early", "PENDING", 3000, 4000).hostsOf("r1", "1-1", "1").lease("late", "PENDING", 2000, 3001).hostsOf("r2", "1-1", "1").plan(t, nil)
	if text := p.Findings[0].Text; !strings.Contains(text, "lease late") || !strings.Contains(text, "lease early") || !strings.Contains(text, "host a") {
		t.Error(text)
	}
}

func TestClaimsOfAlmanacComeFirst(t *testing.T) {
	b := newBlazar().lease("l", "ACTIVE", 100, 4000).hostsOf("r", "1-1", "1")
	p := b.plan(t, func(o *takeover.Options) {
		o.Live = []reservation.Reservation{{
			ID: "native", Status: "pending", Terms: reservation.Terms{Kind: "host"}, Claims: []reservation.Claim{{Host: "a", Span: span.Span{Start: 3999, End: 5000}}},
		}}
	})
	if len(p.Leases) > 0 || p.Stopped() != 1 || !strings.Contains(p.Findings[0].Text, "native") {
		t.Errorf("%v, %v", taken(p), p.Findings)
	}
}

func TestWhatFitsIntoTheHostAsBlazarKnowsItIsTaken(t *testing.T) {
	b := newBlazar().lease("l", "ACTIVE", 100, 4000).instances("r", "1", "1", "1", "1", "1")
	b.Hosts[0].VCPUs = 16
	if p := b.plan(t, nil); !slices.Equal(taken(p), []string{"l: active a*5"}) || !slices.Equal(said(p), []string{"size l"}) || p.Stopped() > 0 {
		t.Errorf("%v, %v", taken(p), p.Findings)
	}
}

func TestLeasesThatCannotBeTakenAreNamedAndLeftOnRequest(t *testing.T) {
	network := newBlazar().lease("l", "ACTIVE", 100, 4000).hostsOf("r", "1-1", "1")
	network.Reservations = append(network.Reservations, takeover.Reservation{ID: "n", LeaseID: "l", Type: "network"})
	address := newBlazar().lease("l", "ACTIVE", 100, 4000)
	address.Reservations = append(address.Reservations, takeover.Reservation{ID: "f", LeaseID: "l", Type: "virtual:floatingip"})
	unranged := newBlazar().lease("l", "PENDING", 2000, 4000).hostsOf("r", "many", "1")
	for name, tc := range map[string]struct {
		b     *blazar
		kind  takeover.Kind
		taken []string // if it is left
	}{
		"a network beside hosts": {network, takeover.Unsupported, []string{"l: active a"}},
		"only an address":        {address, takeover.Unsupported, nil},
		"an unknown host":        {newBlazar().lease("l", "ACTIVE", 100, 4000).hostsOf("r", "1-2", "1", "9"), takeover.UnknownHost, nil},
		"an error":               {newBlazar().lease("l", "ERROR", 100, 4000).hostsOf("r", "1-1", "1"), takeover.InError, nil},
		"no hosts":               {newBlazar().lease("l", "PENDING", 2000, 4000).hostsOf("r", "1-1"), takeover.Unreadable, nil},
		"no range":               {unranged, takeover.Unreadable, nil},
	} {
		if refused := tc.b.plan(t, nil); refused.Stopped() != 1 || refused.Findings[0].Kind != tc.kind || refused.Findings[0].Remedy == "" {
			t.Errorf("%s: %v", name, refused.Findings)
		}
		left := tc.b.plan(t, func(o *takeover.Options) { o.Leave = []takeover.Kind{tc.kind} })
		if left.Stopped() > 0 || !slices.Equal(taken(left), tc.taken) || len(left.Findings) != 1 {
			t.Errorf("%s, left: %v, %v", name, taken(left), left.Findings)
		}
	}
}

func TestALeaseWithoutReservationsIsTaken(t *testing.T) {
	if p := newBlazar().lease("l", "ACTIVE", 100, 4000).plan(t, nil); !slices.Equal(taken(p), []string{"l:"}) || len(p.Findings) > 0 {
		t.Errorf("%v, %v", taken(p), p.Findings)
	}
}

func TestWhatAlmanacHasAlreadyIsNotTakenAgain(t *testing.T) {
	b := newBlazar().lease("l1", "PENDING", 2000, 4000).hostsOf("r1", "1-1", "1").lease("l2", "PENDING", 2000, 4000).hostsOf("r2", "1-1", "1")
	p := b.plan(t, func(o *takeover.Options) { o.Stored = map[string]bool{"l1": true, "r2": true} })
	if len(p.Leases) > 0 || !slices.Equal(said(p), []string{"there"}) || p.Stopped() > 0 {
		t.Errorf("%v, %v", taken(p), p.Findings)
	}
}

func TestLeasesThatHaveEndedAreHistoryOnRequest(t *testing.T) {
	p := newBlazar().lease("l", "TERMINATED", 100, 200).hostsOf("r", "1-2").plan(t, func(o *takeover.Options) { o.History = true })
	if !slices.Equal(taken(p), []string{"l: ended"}) || len(p.Findings) > 0 {
		t.Fatalf("%v, %v", taken(p), p.Findings)
	}
	r := p.Leases[0].Reservations[0]
	if last := r.Events[len(r.Events)-1]; last.Type != "end" || last.State != "done" || r.Quantity != 2 {
		t.Errorf("%v", r)
	}
}

// Without the query, healing could replace a host by one that the owner did not want.
func TestAQueryThatCannotBeTranslatedKeepsTheHosts(t *testing.T) {
	b := newBlazar().lease("l", "PENDING", 2000, 4000).hostsOf("r", "1-2", "2", "1")
	b.Reservations[0].Hosts.ResourceProperties = `["==", "$gpu", "True"]`
	p := b.plan(t, nil)
	r := p.Leases[0].Reservations[0]
	if r.HostProperties != `["in","$name","b","a"]` || r.Membership.ResourceProperties != `["==", "$gpu", "True"]` || !slices.Equal(said(p), []string{"filter l"}) || p.Stopped() > 0 {
		t.Errorf("%s, %v", r.HostProperties, p.Findings)
	}
}

func TestAReservationOfAFlavorWantsItsTraitsAndClasses(t *testing.T) {
	b := newBlazar().lease("l", "PENDING", 2000, 4000).instances("r", "1")
	b.Reservations[0].Type = "flavor:instance"
	b.Reservations[0].Instances.ResourceProperties = `{"name": "m1", "extra_specs": {"resources:CUSTOM_FPGA": "2", "trait:HW_CPU_X86_AVX": "required", "hw:mem": "x"}}`
	b.Hosts[0].VCPUs = 8
	p := b.plan(t, func(o *takeover.Options) {
		hosts := []inventory.Host{{Name: "a", Capacity: resource.Vector{VCPUs: 8, MemoryMB: 8000, DiskGB: 80, Custom: map[string]int64{"CUSTOM_FPGA": 4}}}}
		s, err := inventory.NewSnapshot(hosts, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Hosts = s
	})
	if len(p.Leases) != 1 || len(p.Findings) > 0 {
		t.Fatalf("%v", p.Findings)
	}
	r := p.Leases[0].Reservations[0]
	if r.HostProperties != `["and",["in","HW_CPU_X86_AVX","$traits"]]` || r.Resources.Custom["CUSTOM_FPGA"] != 2 {
		t.Errorf("%s, %v", r.HostProperties, r.Resources)
	}
}
