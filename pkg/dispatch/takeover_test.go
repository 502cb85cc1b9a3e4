package dispatch_test

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
)

// records are what is kept of evictions, by replica.
type records map[string]map[string]eviction.Record

// of gives those of a replica.
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

// TakeEvictions takes over those of "gone".
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

// recorded gives the dispatcher of b a record of its evictions.
func (b *bench) recorded(r *replica) {
	n := 0
	b.Records = r
	b.NewID = func() string {
		n++
		return fmt.Sprint(r.name, n)
	}
}

// dies has a replica place r, which is killed as soon as it waits. other is another.
func dies(t *testing.T, c *cloud, r *placing.Request, as ...func(gone *bench)) (all records, other *bench) {
	t.Helper()
	all = records{}
	gone, other := newBench(t, c, func() error {
		runtime.Goexit()
		return nil
	}), newBench(t, c, never)
	gone.recorded(all.of("gone"))
	for _, set := range as {
		set(gone)
	}
	other.recorded(all.of("other"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = gone.Place(context.Background(), r)
		t.Error("it has gone on")
	}()
	<-done
	return all, other
}

// killed is a replica that is killed while it waits for v0 to go, and another.
func killed(t *testing.T) (records, *bench) {
	t.Helper()
	c := newCloud(4)
	c.preemptible("v0", 0, 2).takes = time.Hour
	c.preemptible("v1", 0, 2).takes = 100 * time.Millisecond
	all, other := dies(t, c, request(4, "a"))
	other.has(t, "a", map[string]int64{host(0): 4})
	other.has(t, "v0", map[string]int64{})
	return all, other
}

func TestWhatAReplicaLeavesUndoneThatIsKilledAnotherUndoes(t *testing.T) {
	all, b := killed(t)
	b.sweep(t)
	b.unharmed(t, "v0")
	b.isGone(t, "v1")
	b.has(t, "a", map[string]int64{})
	if n := b.servers["v0"].staying; n != 1 {
		t.Errorf("v0 was told %d times that it has not to go any more, want once", n)
	}
	if len(all["other"]) > 0 || len(all["gone"]) > 0 {
		t.Errorf("there are records still: %v", all)
	}
}

func TestANoticeOfAReplicaThatIsKilledMeanwhileIsTakenBackByAnother(t *testing.T) {
	c := newCloud(2)
	c.preemptible("v0", 0, 2)
	all, b := dies(t, c, request(2, "a"), func(gone *bench) { gone.Notice = time.Minute })
	if n := len(b.servers["v0"].warned); n != 1 {
		t.Fatalf("v0 was warned %d times", n)
	}
	b.troubles("warn", before)
	if err := b.Sweep(t.Context()); err == nil {
		t.Error("nobody hears that Nova was away")
	}
	b.sweep(t)
	b.unharmed(t, "v0")
	if n := b.servers["v0"].staying; n != 1 {
		t.Errorf("v0 was told %d times that it has not to go any more, want once", n)
	}
	if len(all["other"]) > 0 || len(all["gone"]) > 0 {
		t.Errorf("there are records still: %v", all)
	}
}

func TestANoticeThatCannotBeTakenBackAtOnceIsLater(t *testing.T) {
	all := records{}
	b := full(t, 1)
	b.recorded(all.of("one"))
	b.Notice = time.Minute
	pass, v := b.passes, b.servers["v0"]
	b.passes = func(d time.Duration) {
		v.Locked = true
		b.troubles("warn", before)
		b.passes = pass
		pass(d)
	}
	b.place(t, request(2, "a")) // in the room of another
	if v.staying != 0 || len(all["one"]) == 0 {
		t.Fatalf("v0 was told %d times that it stays, and %v is remembered", v.staying, all)
	}
	b.sweep(t)
	if v.staying != 1 || len(all["one"]) > 0 {
		t.Errorf("v0 was told %d times that it stays, and %v is remembered", v.staying, all)
	}
}

// It was killed after it has told of it, and before that was forgotten.
func TestAnEvictionOfWhichSomebodyWasToldStays(t *testing.T) {
	all, b := killed(t)
	b.vanish("v0")
	b.servers["a"] = &server{Instance: inventory.Instance{ID: "a", Host: host(0), Status: "BUILD"}}
	b.sweep(t)
	b.has(t, "a", map[string]int64{host(0): 4})
	if len(all["other"]) > 0 {
		t.Errorf("there are records still: %v", all)
	}
}

func TestWhatHasEndedIsForgotten(t *testing.T) {
	all := records{}
	b := full(t, 2)
	b.recorded(all.of("one"))
	b.servers["v0"].takes = time.Hour
	b.place(t, request(2, "a"))
	b.sweep(t)
	if len(all["one"]) > 0 {
		t.Errorf("there are records still: %v", all)
	}
}

// Its database shows it as gone, and another has undone what it was about to do.
func TestWhoWasTakenForDeadTellsNobodyOfAPlace(t *testing.T) {
	all := records{}
	b := full(t, 1)
	b.recorded(all.of("one"))
	pass := b.passes
	b.passes = func(d time.Duration) {
		clear(all["one"])
		pass(d)
	}
	if _, err := b.Place(t.Context(), request(2, "a")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want an unavailable fault", err)
	}
	b.sweep(t)
	b.has(t, "a", map[string]int64{})
}

func TestNobodyIsEvictedWithoutARecord(t *testing.T) {
	all := records{}
	b := full(t, 1)
	r := all.of("one")
	b.recorded(r)
	r.away = true
	if _, err := b.Place(t.Context(), request(2, "a")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want an unavailable fault", err)
	}
	b.unharmed(t, "v0", "v1")
	if n := count(b.calls, "leave") + count(b.calls, "claim"); n > 0 {
		t.Errorf("there were %d orders and claims", n)
	}
	if used := b.board.Load().Column("VCPU").Used[0]; used != 4 {
		t.Errorf("%d VCPU count as used, want 4", used)
	}
}

// Its instance keeps on its old host what it has, so that it is another claim that is
// granted.
func TestTheEvictionForAnEvacuatedInstanceIsUndoneAfterAKill(t *testing.T) {
	c := newCloud(4, 4)
	c.preemptible("v0", 0, 4).takes = time.Hour
	if err := c.grant([]placing.Claim{{Consumer: "a", Allocations: placing.Allocations{provider(1): {"VCPU": 4}}}}); err != nil {
		t.Fatal(err)
	}
	_, other := dies(t, c, request(4, "a"))
	other.has(t, "a", map[string]int64{host(0): 4, host(1): 4})
	other.sweep(t)
	other.has(t, "a", map[string]int64{host(1): 4})
	other.has(t, "v0", map[string]int64{host(0): 4})
}

// The first attempt was refused, the second granted, and the replica died before it has
// swept.
func TestAnEvictionThatWasRefusedIsForgottenBeforeTheNext(t *testing.T) {
	all := records{}
	b := full(t, 1)
	r := all.of("gone")
	b.recorded(r)
	claims := 0
	b.fate = func(call string) fate {
		if call == "claim" {
			if claims++; claims == 1 {
				if err := b.grant([]placing.Claim{b.consumers["v0"]}); err != nil { // another has changed it
					t.Fatal(err)
				}
			}
		}
		return fine
	}
	b.place(t, request(2, "a"))
	if claims != 2 || len(r.records["gone"]) > 0 {
		t.Errorf("there were %d claims, and %v is still remembered", claims, r.records["gone"])
	}
}
