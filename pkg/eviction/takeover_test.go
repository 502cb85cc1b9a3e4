// SPDX-License-Identifier: Apache-2.0

package eviction_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/tests/cloudtest"
)

// records holds the records of evictions, by replica.
type records map[string]map[string]eviction.Record

// of returns the replica of that name, without records.
func (r records) of(name string) *replica {
	r[name] = map[string]eviction.Record{}
	return &replica{records: r, name: name}
}

type replica struct {
	records records
	name    string
	away    bool
}

func (r *replica) BeginEviction(_ context.Context, e eviction.Record) error {
	if r.away {
		return fault.New(fault.Unavailable, "the database is away")
	}
	e.Preemptors, e.Victims = slices.Clone(e.Preemptors), slices.Clone(e.Victims)
	r.records[r.name][e.ID] = e
	return nil
}

func (r *replica) EndEviction(_ context.Context, id string) error {
	if r.away {
		return fault.New(fault.Unavailable, "the database is away")
	}
	if _, there := r.records[r.name][id]; !there {
		return fault.New(fault.Conflict, "another has taken it over")
	}
	delete(r.records[r.name], id)
	return nil
}

// TakeEvictions takes over the evictions of "gone".
func (r *replica) TakeEvictions(context.Context) (list []eviction.Record, _ error) {
	if r.name == "gone" {
		return nil, nil
	}
	for id, e := range r.records["gone"] {
		r.records[r.name][id] = e
		list = append(list, e)
	}
	clear(r.records["gone"])
	return list, nil
}

// record lets b store its evictions as the replica.
func record(b *cloudtest.Bench, r *replica) {
	n := 0
	b.Records = r
	b.NewID = func() string {
		n++
		return fmt.Sprint(r.name, n)
	}
}

// dies lets a replica place r and kills it as soon as it waits. other is another replica.
func dies(t *testing.T, c *cloudtest.Model, r *placing.Request, as ...func(gone *cloudtest.Bench)) (all records, other *cloudtest.Bench) {
	t.Helper()
	all = records{}
	gone, other := cloudtest.New(t, c, func() error {
		runtime.Goexit()
		return nil
	}), cloudtest.New(t, c, cloudtest.Never)
	record(gone, all.of("gone"))
	for _, set := range as {
		set(gone)
	}
	record(other, all.of("other"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = gone.Place(context.Background(), r)
		t.Error("it has gone on")
	}()
	<-done
	return all, other
}

// killed returns the records of a replica that was killed while it waited for v0 to leave, and
// another replica.
func killed(t *testing.T) (records, *cloudtest.Bench) {
	t.Helper()
	c := cloudtest.NewCloud(4)
	c.Preemptible("v0", 0, 2).Takes = time.Hour
	c.Preemptible("v1", 0, 2).Takes = 100 * time.Millisecond
	all, other := dies(t, c, cloudtest.Request(4, "a"))
	other.Has(t, "a", map[string]int64{cloudtest.Host(0): 4})
	other.Has(t, "v0", map[string]int64{})
	return all, other
}

func TestWhatAReplicaLeavesUndoneThatIsKilledAnotherUndoes(t *testing.T) {
	all, b := killed(t)
	b.MustSweep(t)
	b.Unharmed(t, "v0")
	b.Gone(t, "v1")
	b.Has(t, "a", map[string]int64{})
	if n := b.Servers["v0"].Withdrawn; n != 1 {
		t.Errorf("v0 was told %d times that it stays, want once", n)
	}
	if len(all["other"]) > 0 || len(all["gone"]) > 0 {
		t.Errorf("there are still records: %v", all)
	}
}

func TestANoticeOfAReplicaThatIsKilledMeanwhileIsTakenBackByAnother(t *testing.T) {
	c := cloudtest.NewCloud(2)
	c.Preemptible("v0", 0, 2)
	all, b := dies(t, c, cloudtest.Request(2, "a"), func(gone *cloudtest.Bench) { gone.Notice = time.Minute })
	if n := len(b.Servers["v0"].Warned); n != 1 {
		t.Fatalf("v0 was warned %d times", n)
	}
	b.Troubles("warn", cloudtest.Before)
	if err := b.Sweep(t.Context()); err == nil {
		t.Error("the sweep reports no error although Nova was away")
	}
	b.MustSweep(t)
	b.Unharmed(t, "v0")
	if n := b.Servers["v0"].Withdrawn; n != 1 {
		t.Errorf("v0 was told %d times that it stays, want once", n)
	}
	if len(all["other"]) > 0 || len(all["gone"]) > 0 {
		t.Errorf("there are still records: %v", all)
	}
}

func TestANoticeThatCannotBeTakenBackAtOnceIsLater(t *testing.T) {
	all := records{}
	b := cloudtest.Full(t, 1)
	record(b, all.of("one"))
	b.Notice = time.Minute
	pass, v := b.Passes, b.Servers["v0"]
	b.Passes = func(d time.Duration) {
		v.Locked = true
		b.Troubles("warn", cloudtest.Before)
		b.Passes = pass
		pass(d)
	}
	b.MustPlace(t, cloudtest.Request(2, "a")) // in the room of v1
	if v.Withdrawn != 0 || len(all["one"]) == 0 {
		t.Fatalf("v0 was told %d times that it stays, and the records are %v", v.Withdrawn, all)
	}
	b.MustSweep(t)
	if v.Withdrawn != 1 || len(all["one"]) > 0 {
		t.Errorf("v0 was told %d times that it stays, and the records are %v", v.Withdrawn, all)
	}
}

// The replica is killed after it has answered and before it has deleted the record.
func TestAnEvictionOfWhichSomebodyWasToldStays(t *testing.T) {
	all, b := killed(t)
	b.Vanish("v0")
	b.Servers["a"] = &cloudtest.Server{Instance: inventory.Instance{ID: "a", Host: cloudtest.Host(0), Status: "BUILD"}}
	b.MustSweep(t)
	b.Has(t, "a", map[string]int64{cloudtest.Host(0): 4})
	if len(all["other"]) > 0 {
		t.Errorf("there are still records: %v", all)
	}
}

func TestWhatHasEndedIsForgotten(t *testing.T) {
	all := records{}
	b := cloudtest.Full(t, 2)
	record(b, all.of("one"))
	b.Servers["v0"].Takes = time.Hour
	b.MustPlace(t, cloudtest.Request(2, "a"))
	b.MustSweep(t)
	if len(all["one"]) > 0 {
		t.Errorf("there are still records: %v", all)
	}
}

// The database shows the replica as gone, and another one has undone its eviction.
func TestWhoWasTakenForDeadTellsNobodyOfAPlace(t *testing.T) {
	all := records{}
	b := cloudtest.Full(t, 1)
	record(b, all.of("one"))
	pass := b.Passes
	b.Passes = func(d time.Duration) {
		clear(all["one"])
		pass(d)
	}
	if _, err := b.Place(t.Context(), cloudtest.Request(2, "a")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want an unavailable fault", err)
	}
	b.MustSweep(t)
	b.Has(t, "a", map[string]int64{})
}

func TestNobodyIsEvictedWithoutARecord(t *testing.T) {
	all := records{}
	b := cloudtest.Full(t, 1)
	r := all.of("one")
	record(b, r)
	r.away = true
	if _, err := b.Place(t.Context(), cloudtest.Request(2, "a")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want an unavailable fault", err)
	}
	b.Unharmed(t, "v0", "v1")
	if n := cloudtest.Count(b.Calls, "leave") + cloudtest.Count(b.Calls, "claim"); n > 0 {
		t.Errorf("there were %d orders and claims", n)
	}
	if used := b.Board.Load().Column("VCPU").Used[0]; used != 4 {
		t.Errorf("%d VCPU count as used, want 4", used)
	}
}

// The instance keeps its allocation on the old host, so Placement grants another claim.
func TestTheEvictionForAnEvacuatedInstanceIsUndoneAfterAKill(t *testing.T) {
	c := cloudtest.NewCloud(4, 4)
	c.Preemptible("v0", 0, 4).Takes = time.Hour
	if err := c.Grant([]placing.Claim{{Consumer: "a", Allocations: placing.Allocations{cloudtest.Provider(1): {"VCPU": 4}}}}); err != nil {
		t.Fatal(err)
	}
	_, other := dies(t, c, cloudtest.Request(4, "a"))
	other.Has(t, "a", map[string]int64{cloudtest.Host(0): 4, cloudtest.Host(1): 4})
	other.MustSweep(t)
	other.Has(t, "a", map[string]int64{cloudtest.Host(1): 4})
	other.Has(t, "v0", map[string]int64{cloudtest.Host(0): 4})
}

// Placement refuses the first attempt and grants the second, and the replica dies before it
// sweeps.
func TestAnEvictionThatWasRefusedIsForgottenBeforeTheNext(t *testing.T) {
	all := records{}
	b := cloudtest.Full(t, 1)
	r := all.of("gone")
	record(b, r)
	claims := 0
	b.Fate = func(call string) cloudtest.Fate {
		if call == "claim" {
			if claims++; claims == 1 {
				if err := b.Grant([]placing.Claim{b.Consumers["v0"]}); err != nil { // as if another client had changed it
					t.Fatal(err)
				}
			}
		}
		return cloudtest.Fine
	}
	b.MustPlace(t, cloudtest.Request(2, "a"))
	if claims != 2 || len(r.records["gone"]) > 0 {
		t.Errorf("there were %d claims, and the records are still %v", claims, r.records["gone"])
	}
}
