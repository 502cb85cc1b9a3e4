// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/controller"
	"github.com/almanac-cloud/almanac/reservation/besteffort/requests"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

type bestEffort interface {
	controller.Records
	requests.RequestStore
	requests.Pins
	BestEffortUserData(ctx context.Context, id string) (string, error)
	Resting(ctx context.Context, servers ...string) (map[string]bool, error)
	Departing(ctx context.Context, servers ...string) (map[string]span.Instant, error)
	PurgeBestEffort(ctx context.Context, lease job.Lease, before span.Instant) (int, error)
	PlacedByQueue(ctx context.Context) (servers []string, err error)
}

func testBestEffort(t *testing.T, open func(t *testing.T) Subject) {
	for name, test := range map[string]func(t *testing.T, s bestEffort){
		"what is stored comes back":                 testBestEffortComesBack,
		"lists are by place, page by page":          testBestEffortPages,
		"a key stands for one request":              testBestEffortKeys,
		"a project has no more VMs than it may":     testBestEffortLimit,
		"that holds for requests at once too":       testBestEffortCrowd,
		"a request stays canceled or over":          testBestEffortEnds,
		"pins and suspended servers are up to date": testBestEffortPins,
		"servers stay where the queue has put them": testBestEffortPlaced,
		"old ones are purged":                       testBestEffortPurge,
	} {
		t.Run(name, func(t *testing.T) { test(t, offered[bestEffort](t, open(t))) })
	}
}

// queued returns a request with every stored field.
func queued(id, project string, vms ...string) state.Request {
	r := state.Request{
		ID: id, ProjectID: project, UserID: "u", Name: "n", Created: 1000, Flavor: state.Named{ID: "1", Name: "tiny"},
		Image: state.Named{ID: "i", Name: "cirros"}, Shape: resource.Vector{VCPUs: 1, MemoryMB: 512, DiskGB: 1, Custom: map[string]int64{"CUSTOM_X": 1}},
		Duration: 60, Parallel: true, Networks: []string{"none"}, KeyName: "k", Metadata: map[string]string{"a": "b"}, Trust: "t",
		Key: "key of " + id, BodyHash: "hash",
	}
	for n, vm := range vms {
		r.VMs = append(r.VMs, state.VM{ID: vm, Number: n, Phase: besteffort.Waiting, Since: 1000})
	}
	return r
}

func add(t *testing.T, s bestEffort, r state.Request) state.Request {
	t.Helper()
	stored, err := s.AddBestEffort(t.Context(), r, "aGk=", 0)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func testBestEffortComesBack(t *testing.T, s bestEffort) {
	want := queued("a", "p", "a0", "a1")
	stored := add(t, s, want)
	if want.Place = stored.Place; want.Place == 0 || diff(want, stored) != "" {
		t.Errorf("stored (-want +got):\n%s", diff(want, stored))
	}
	want.VMs[1] = state.VM{
		ID: "a1", Number: 1, Phase: besteffort.Suspended, Node: "h", Since: 1, Until: 2, Ran: 3, Server: "s", Attempt: 4, Asked: 5, Deadline: 6,
		Held: &state.Held{ProjectID: "p", UserID: "u", Allocations: placing.Allocations{"provider": {"VCPU": 1}}},
		Then: besteffort.Done, Failures: 7, RetryAt: 8, Reason: "why",
	}
	if err := s.SaveBestEffortVMs(t.Context(), job.Lease{}, want.VMs[1:]); err != nil {
		t.Fatal(err)
	}
	open, err := s.OpenBestEffort(t.Context())
	if d := diff([]state.Request{want}, open); err != nil || d != "" {
		t.Errorf("open (-want +got), %v:\n%s", err, d)
	}
	err = s.SaveBestEffortVMs(t.Context(), job.Lease{Name: "besteffort", Epoch: 9}, stored.VMs)
	if err == nil {
		t.Error("VMs are stored under a lease that another process has acquired")
	}
	if data, err := s.BestEffortUserData(t.Context(), "a"); err != nil || data != "aGk=" {
		t.Errorf("its user_data is %q, %v", data, err)
	}
	if _, err := s.BestEffort(t.Context(), "other"); !fault.Is(err, fault.NotFound) {
		t.Errorf("one that is not there: %v", err)
	}
}

func testBestEffortPages(t *testing.T, s bestEffort) {
	for _, id := range []string{"c", "a", "b"} {
		add(t, s, queued(id, "p", id+"0"))
	}
	add(t, s, queued("d", "q", "d0"))
	ids := func(q requests.Query) (got string) {
		t.Helper()
		list, err := s.ListBestEffort(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			got += r.ID
		}
		return got
	}
	for _, test := range []struct {
		q    requests.Query
		want string
	}{
		{requests.Query{}, "cabd"},
		{requests.Query{ProjectID: "p", Limit: 2}, "ca"},
		{requests.Query{ProjectID: "p", Limit: 2, Marker: "a"}, "b"},
		{requests.Query{ProjectID: "q"}, "d"},
	} {
		if got := ids(test.q); got != test.want {
			t.Errorf("%+v lists %q, want %q", test.q, got, test.want)
		}
	}
	if _, err := s.ListBestEffort(t.Context(), requests.Query{ProjectID: "q", Marker: "a"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("the marker of another project: %v", err)
	}
}

func testBestEffortKeys(t *testing.T, s bestEffort) {
	first := add(t, s, queued("a", "p", "a0"))
	again := queued("b", "p", "b0")
	again.Key = first.Key
	if got := add(t, s, again); got.ID != "a" {
		t.Errorf("the key stands for %s", got.ID)
	}
	again.ProjectID = "q"
	if got := add(t, s, again); got.ID != "b" {
		t.Errorf("the key of another project stands for %s", got.ID)
	}
	if _, used, err := s.BestEffortOfKey(t.Context(), "p", "unused"); used || err != nil {
		t.Errorf("an unused key: %v, %v", used, err)
	}
	for _, id := range []string{"c", "d"} {
		r := queued(id, "p", id+"0")
		r.Key = ""
		if got := add(t, s, r); got.ID != id || got.Key != "" {
			t.Errorf("without a key: %+v", got)
		}
	}
}

func testBestEffortLimit(t *testing.T, s bestEffort) {
	add(t, s, queued("a", "p", "a0", "a1"))
	add(t, s, queued("b", "q", "b0", "b1"))
	if _, err := s.AddBestEffort(t.Context(), queued("c", "p", "c0", "c1"), "", 3); !fault.Is(err, fault.Refused) {
		t.Errorf("four of three: %v", err)
	}
	if _, err := s.AddBestEffort(t.Context(), queued("d", "p", "d0"), "", 3); err != nil {
		t.Errorf("three of three: %v", err)
	}
}

func testBestEffortCrowd(t *testing.T, s bestEffort) {
	var all sync.WaitGroup
	var taken atomic.Int32
	for i := range 8 {
		all.Go(func() {
			_, err := s.AddBestEffort(t.Context(), queued(fmt.Sprint("r", i), "p", fmt.Sprint("a", i), fmt.Sprint("b", i)), "", 3)
			switch {
			case err == nil:
				taken.Add(1)
			case !fault.Is(err, fault.Refused):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := taken.Load(); n != 1 {
		t.Errorf("%d requests of two VMs each were accepted at once, where three VMs are allowed", n)
	}
}

func testBestEffortEnds(t *testing.T, s bestEffort) {
	add(t, s, queued("a", "p", "a0"))
	for _, at := range []span.Instant{2000, 3000} {
		if err := s.CancelBestEffort(t.Context(), "a", at); err != nil {
			t.Fatal(err)
		}
		if err := s.CloseBestEffort(t.Context(), job.Lease{}, "a", at+500); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CancelBestEffort(t.Context(), "other", 1); err != nil {
		t.Errorf("cancel what is not there: %v", err)
	}
	r, err := s.BestEffort(t.Context(), "a")
	if err != nil || r.Canceled != 2000 || r.Over != 2500 {
		t.Errorf("it is %+v, %v", r, err)
	}
	if open, err := s.OpenBestEffort(t.Context()); len(open) != 0 || err != nil {
		t.Errorf("open are %v, %v", open, err)
	}
	if all, err := s.ListBestEffort(t.Context(), requests.Query{All: true}); len(all) != 1 || err != nil {
		t.Errorf("all are %v, %v", all, err)
	}
}

func testBestEffortPins(t *testing.T, s bestEffort) {
	r := add(t, s, queued("a", "p", "a0", "a1"))
	r.VMs[0].Phase, r.VMs[0].Node, r.VMs[0].Server = besteffort.Suspended, "h", "s0"
	r.VMs[1].Phase, r.VMs[1].Server, r.VMs[1].Deadline = besteffort.Suspending, "s1", 1234
	if err := s.SaveBestEffortVMs(t.Context(), job.Lease{}, r.VMs); err != nil {
		t.Fatal(err)
	}
	pin, known, err := s.BestEffortPin(t.Context(), "a0")
	if want := (requests.Pinned{ProjectID: "p", Server: "s0", Node: "h", Phase: besteffort.Suspended}); !known || err != nil || pin != want {
		t.Errorf("the pin is %+v, %v, %v", pin, known, err)
	}
	if _, known, err := s.BestEffortPin(t.Context(), "other"); known || err != nil {
		t.Errorf("a pin that is not there: %v, %v", known, err)
	}
	resting, err := s.Resting(t.Context(), "s0", "s1", "s2")
	if d := diff(map[string]bool{"s0": true}, resting); err != nil || d != "" {
		t.Errorf("resting (-want +got), %v:\n%s", err, d)
	}
	departing, err := s.Departing(t.Context(), "s0", "s1", "s2")
	if d := diff(map[string]span.Instant{"s0": 0, "s1": 1234}, departing); err != nil || d != "" {
		t.Errorf("departing (-want +got), %v:\n%s", err, d)
	}
}

func testBestEffortPurge(t *testing.T, s bestEffort) {
	for i, id := range []string{"a", "b", "c"} {
		add(t, s, queued(id, "p", id+"0"))
		if id == "c" {
			break
		}
		if err := s.CloseBestEffort(t.Context(), job.Lease{}, id, span.Instant(2000+1000*i)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.PurgeBestEffort(t.Context(), job.Lease{}, 2500); n != 1 || err != nil {
		t.Errorf("%d are purged, %v", n, err)
	}
	if all, err := s.ListBestEffort(t.Context(), requests.Query{All: true}); len(all) != 2 || err != nil {
		t.Errorf("%v are left, %v", all, err)
	}
}

// A server that moves is on its way to the host that the queue has chosen.
func testBestEffortPlaced(t *testing.T, s bestEffort) {
	placed := map[besteffort.Phase]bool{
		besteffort.Waiting: false, besteffort.Staging: false, besteffort.Starting: true, besteffort.Running: true, besteffort.Suspending: true, besteffort.Suspended: true,
		besteffort.Moving: true, besteffort.Resuming: true, besteffort.Stopping: true, besteffort.Done: false, besteffort.Failed: false,
	}
	var want []string
	for phase, is := range placed {
		r := add(t, s, queued("request "+string(phase), "p", "vm "+string(phase)))
		r.VMs[0].Phase, r.VMs[0].Server = phase, "server "+string(phase)
		if err := s.SaveBestEffortVMs(t.Context(), job.Lease{}, r.VMs); err != nil {
			t.Fatal(err)
		}
		if is {
			want = append(want, r.VMs[0].Server)
		}
	}
	got, err := s.PlacedByQueue(t.Context())
	slices.Sort(got)
	slices.Sort(want)
	if d := diff(want, got); err != nil || d != "" {
		t.Errorf("placed (-want +got), %v:\n%s", err, d)
	}
}
