package inventory_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

func cpus(used int64) stocks {
	return stocks{"VCPU": {Total: 100, Ratio: 1, Used: used}}
}

func board(t testing.TB, rows ...inventory.HostState) *inventory.Board {
	t.Helper()
	b := inventory.NewBoard()
	b.Take(b.Begin(), states(t, rows), nil)
	return b
}

// taking plans to take n VCPUs of the host at place i for an instance.
func taking(i int, instance string, n int64) func(*inventory.States) ([]inventory.Take, error) {
	return func(*inventory.States) ([]inventory.Take, error) {
		return []inventory.Take{{Host: i, Instance: instance, Resources: amounts{"VCPU": n}}}, nil
	}
}

func place(t testing.TB, b *inventory.Board, plan func(*inventory.States) ([]inventory.Take, error)) *inventory.Hold {
	t.Helper()
	h, err := b.Place(plan)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// used gives what is used of the VCPUs, by place.
func used(b *inventory.Board) []int64 { return b.Load().Column("VCPU").Used }

func TestABoardHasNoStatesBeforeTheFirstReading(t *testing.T) {
	b := inventory.NewBoard()
	if b.Load() != nil {
		t.Error("there are states")
	}
	b.Correct(b.Begin(), "a", cpus(1))
	if _, err := b.Place(taking(0, "x", 1)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	b.Freed("a")
	b.Take(b.Begin(), states(t, []inventory.HostState{{Name: "a", Stocks: cpus(3)}}), nil)
	if used(b)[0] != 3 || len(b.Unclear()) > 0 {
		t.Errorf("used %v, unclear %v", used(b), b.Unclear())
	}
}

func TestAHostThatAnInstanceHasLeftIsUnclearUntilItIsRead(t *testing.T) {
	hosts := []inventory.HostState{{Name: "a", Stocks: cpus(1)}, {Name: "b", Stocks: cpus(1)}, {Name: "c", Stocks: cpus(1)}}
	b := board(t, hosts...)
	early := b.Begin()
	for _, host := range []string{"C", "a", "nobody"} {
		b.Freed(host)
	}
	expect := func(when string, want ...string) {
		t.Helper()
		if got := b.Unclear(); !slices.Equal(got, want) {
			t.Errorf("%s %v are unclear, want %v", when, got, want)
		}
	}
	expect("at first", "a", "c")
	b.Correct(b.Begin(), "a", cpus(0))
	expect("after a look at a", "c")
	b.Take(early, states(t, hosts), nil)
	expect("after a reading that began before", "c")
	b.Freed("a")
	expect("when another has left a", "a", "c")
	b.Take(b.Begin(), states(t, hosts), nil)
	expect("after a reading")
}

func TestWhatIsPlacedCountsAtOnce(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(1)})
	h := place(t, b, taking(0, "x", 2))
	if used(b)[0] != 3 || len(b.Load().InstancesOn(0)) != 1 {
		t.Errorf("used %v, instances %v", used(b), b.Load().InstancesOn(0))
	}
	other := place(t, b, taking(0, "y", 4))
	h.Undo()
	h.Undo()
	h.Settle()
	if used(b)[0] != 5 || len(b.Load().InstancesOn(0)) != 1 {
		t.Errorf("after Undo: used %v, instances %v", used(b), b.Load().InstancesOn(0))
	}
	other.Settle()
	other.Undo()
	if used(b)[0] != 5 {
		t.Errorf("after Settle: used %v", used(b))
	}
}

func TestAPlanThatFailsHoldsNothing(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(1)})
	wrong := errors.New("no valid host")
	before := b.Load()
	_, err := b.Place(func(*inventory.States) ([]inventory.Take, error) { return []inventory.Take{{Instance: "x"}}, wrong })
	if !errors.Is(err, wrong) || b.Load() != before {
		t.Errorf("got %v", err)
	}
}

func TestAReadingOfBeforeIsDropped(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(1)})
	old, late := b.Begin(), b.Begin()
	b.Take(late, states(t, []inventory.HostState{{Name: "a", Stocks: cpus(2)}}), nil)
	b.Take(old, states(t, []inventory.HostState{{Name: "a", Stocks: cpus(3)}}), nil)
	b.Correct(old, "a", cpus(4))
	if used(b)[0] != 2 {
		t.Errorf("used %v", used(b))
	}
}

func TestAHoldIsOnItsHostWhereverThatLies(t *testing.T) {
	b := board(t, inventory.HostState{Name: "b", Stocks: cpus(1)}, inventory.HostState{Name: "c", Stocks: cpus(1)})
	place(t, b, taking(1, "x", 2))
	place(t, b, taking(0, "y", 5))
	b.Take(b.Begin(), states(t, []inventory.HostState{{Name: "a", Stocks: cpus(7)}, {Name: "c", Stocks: cpus(8)}}), nil)
	if !slices.Equal(used(b), []int64{7, 10}) {
		t.Errorf("used %v", used(b))
	}
}

func TestACorrectionReplacesAllStocksOfItsHost(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: stocks{"VCPU": {Total: 8, Ratio: 1, Used: 5}, "CUSTOM_OLD": {Total: 1, Ratio: 1}}}, inventory.HostState{Name: "b", Stocks: cpus(9)})
	place(t, b, taking(0, "settled", 1)).Settle()
	m := b.Begin()
	place(t, b, taking(0, "later", 2)).Settle()
	want := stocks{"VCPU": {Total: 4, Ratio: 1, Used: 1}, "CUSTOM_NEW": {Total: 6, Ratio: 1}}
	b.Correct(m, "a", want)
	b.Correct(m, "gone", want)
	s := b.Load()
	if got := []int64{s.Column("VCPU").Limit[0], s.Column("VCPU").Used[0], s.Column("VCPU").Used[1], s.Column("CUSTOM_NEW").Limit[0],
		s.Column("CUSTOM_OLD").Limit[0], int64(len(s.InstancesOn(0)))}; !slices.Equal(got, []int64{4, 3, 9, 6, 0, 2}) {
		t.Errorf("got %v", got)
	}
}

func TestALookAtWhatIsUnclearTellsWhetherAClaimCountsTwice(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(0)}, inventory.HostState{Name: "b", Stocks: cpus(0)})
	m := b.Begin()
	place(t, b, taking(0, "x", 2)).Settle()
	place(t, b, taking(0, "y", 1)).Settle()
	place(t, b, taking(1, "z", 1)) // of which nobody knows yet
	b.Take(m, states(t, []inventory.HostState{{Name: "a", Stocks: cpus(3)}, {Name: "b", Stocks: cpus(0)}}), nil)
	if diff := cmp.Diff([]string{"a"}, b.Unclear()); diff != "" || used(b)[0] != 6 {
		t.Errorf("used %v, unclear (-want +got):\n%s", used(b), diff)
	}
	b.Correct(b.Begin(), "a", cpus(3))
	if b.Unclear() != nil || used(b)[0] != 3 {
		t.Errorf("used %v, unclear %v", used(b), b.Unclear())
	}
}

func TestAnInstanceOnItsWayStaysOnItsHost(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(0)})
	for _, id := range []string{"on its way", "nowhere", "there"} {
		place(t, b, taking(0, id, 1)).Settle()
	}
	underWay := func(id string) bool { return id == "on its way" }
	for range 2 {
		b.Take(b.Begin(), states(t, []inventory.HostState{{Name: "a", Stocks: cpus(3), Instances: []inventory.Instance{{ID: "there"}}}}), underWay)
		var ids []string
		for _, i := range b.Load().InstancesOn(0) {
			ids = append(ids, i.ID)
		}
		if diff := cmp.Diff([]string{"there", "on its way"}, ids); diff != "" || used(b)[0] != 3 {
			t.Errorf("used %v, instances (-want +got):\n%s", used(b), diff)
		}
	}
}

func TestPlansOfManyNeverTakeMoreThanThereIs(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(0)})
	full := errors.New("full")
	one := func(s *inventory.States) ([]inventory.Take, error) {
		if c := s.Column("VCPU"); c.Used[0] >= c.Limit[0] {
			return nil, full
		}
		return []inventory.Take{{Resources: amounts{"VCPU": 1}}}, nil
	}
	var mu sync.Mutex
	var placed int
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := range 50 {
				h, err := b.Place(one)
				if err != nil {
					continue
				}
				if n%5 == 0 {
					h.Undo()
					continue
				}
				mu.Lock()
				placed++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if placed > 100 || used(b)[0] != int64(placed) {
		t.Errorf("%d placed, %v used", placed, used(b))
	}
}

// world is a cloud with a board in front of it. Its steps come in any order.
type world struct {
	b     *inventory.Board
	hosts int
	// foreign is what others have taken of each host; own claims come on top of it.
	foreign  []int64
	claims   []*ownClaim
	readings []*ownReading
	looks    []*ownReading // of one host each
	// shown is what others had taken of each host when it was read, as far as the board
	// knows it; -1 is that it lacks the host.
	shown   []int64
	taken   inventory.Mark // of the last reading that the board took
	looked  []*ownReading  // the last look at each host that it took; nil is none
	counter int
}

type ownClaim struct {
	id     string
	host   int
	amount int64
	hold   *inventory.Hold
	landed bool // Placement has it
	held   bool // neither settled nor undone
	gone   bool // undone, or deleted since
	there  bool // Nova shows its instance on the host
}

// ownReading reads the usages of hosts one after the other.
type ownReading struct {
	mark     inventory.Mark
	hosts    []int // still to be read
	lacks    int   // this host; -1 is none
	used     map[int]int64
	foreign  map[int]int64
	on       map[int][]inventory.Instance
	underWay map[string]bool
}

func (w *world) used(host int) int64 {
	n := w.foreign[host]
	for _, c := range w.claims {
		if c.host == host && c.landed && !c.gone {
			n += c.amount
		}
	}
	return n
}

func (w *world) begin(hosts []int, lacks int) *ownReading {
	r := &ownReading{mark: w.b.Begin(), hosts: hosts, lacks: lacks, used: map[int]int64{}, foreign: map[int]int64{}, on: map[int][]inventory.Instance{}, underWay: map[string]bool{}}
	for _, c := range w.claims {
		if c.there && !c.gone {
			r.on[c.host] = append(r.on[c.host], inventory.Instance{ID: c.id})
		}
		r.underWay[c.id] = !c.there && !c.gone
	}
	return r
}

func (r *ownReading) step(w *world) {
	host := r.hosts[0]
	r.used[host], r.foreign[host] = w.used(host), w.foreign[host]
	r.hosts = r.hosts[1:]
}

func (w *world) take(t *rapid.T, r *ownReading) {
	var rows []inventory.HostState
	for host := range w.hosts {
		if host != r.lacks {
			rows = append(rows, inventory.HostState{Name: fmt.Sprint(host), Stocks: cpus(r.used[host]), Instances: r.on[host]})
		}
	}
	s, err := inventory.NewStates(rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.b.Take(r.mark, s, func(id string) bool { return r.underWay[id] })
	if r.mark < w.taken {
		return
	}
	w.taken = r.mark
	for host := range w.hosts {
		switch look := w.looked[host]; {
		case host == r.lacks:
			w.shown[host] = -1
		case look != nil && look.mark > r.mark:
			w.shown[host] = look.foreign[host]
		default:
			w.shown[host] = r.foreign[host]
		}
	}
}

func (w *world) correct(r *ownReading) {
	for host, used := range r.used {
		w.b.Correct(r.mark, fmt.Sprint(host), cpus(used))
		if look := w.looked[host]; r.mark < w.taken || look != nil && r.mark < look.mark {
			continue
		}
		if w.looked[host] = r; w.shown[host] >= 0 {
			w.shown[host] = r.foreign[host]
		}
	}
}

// check fails where the board offers what is taken.
func (w *world) check(t *rapid.T) {
	s := w.b.Load()
	for host := range w.hosts {
		i, there := s.Index(fmt.Sprint(host))
		if there != (w.shown[host] >= 0) {
			t.Fatalf("host %d is there: %v", host, there)
		}
		if !there {
			continue
		}
		least := w.shown[host]
		for _, c := range w.claims {
			if c.host != host || c.gone {
				continue
			}
			least += c.amount
			if !slices.ContainsFunc(s.InstancesOn(i), func(i inventory.Instance) bool { return i.ID == c.id }) {
				t.Fatalf("instance %s is not on host %d", c.id, host)
			}
		}
		if got := s.Column("VCPU").Used[i]; got < least {
			t.Fatalf("of host %d %d is shown as used, but at least %d is", host, got, least)
		}
	}
}

func (w *world) pick(t *rapid.T, which func(c *ownClaim) bool) *ownClaim {
	var some []*ownClaim
	for _, c := range w.claims {
		if !c.gone && which(c) {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		t.Skip("there is none")
	}
	return rapid.SampledFrom(some).Draw(t, "claim")
}

// all gives the hosts in some order.
func (w *world) all(t *rapid.T) []int {
	hosts := make([]int, w.hosts)
	for i := range hosts {
		hosts[i] = i
	}
	return rapid.Permutation(hosts).Draw(t, "order")
}

// advance takes one of the readings a step further, and finishes it after its last.
func (w *world) advance(t *rapid.T, under *[]*ownReading, finish func(r *ownReading)) {
	if len(*under) == 0 {
		t.Skip("none is under way")
	}
	i := rapid.IntRange(0, len(*under)-1).Draw(t, "reading")
	if r := (*under)[i]; len(r.hosts) > 0 {
		r.step(w)
	} else {
		*under = slices.Delete(*under, i, i+1)
		finish(r)
	}
}

func TestABoardNeverOffersWhatItHasGivenAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const hosts = 3
		w := &world{b: inventory.NewBoard(), hosts: hosts, foreign: make([]int64, hosts), shown: make([]int64, hosts), looked: make([]*ownReading, hosts)}
		first := w.begin(w.all(t), -1)
		for len(first.hosts) > 0 {
			first.step(w)
		}
		w.take(t, first)
		t.Repeat(map[string]func(*rapid.T){
			"": w.check,
			"others take and leave": func(t *rapid.T) {
				w.foreign[rapid.IntRange(0, hosts-1).Draw(t, "host")] = rapid.Int64Range(0, 20).Draw(t, "amount")
			},
			"place": func(t *rapid.T) {
				s := w.b.Load()
				i := rapid.IntRange(0, s.Len()-1).Draw(t, "place")
				var host int
				if _, err := fmt.Sscan(s.Host(i).Name, &host); err != nil {
					t.Fatal(err)
				}
				w.counter++
				c := &ownClaim{id: fmt.Sprint("i", w.counter), host: host, amount: rapid.Int64Range(1, 5).Draw(t, "amount"), held: true}
				var err error
				if c.hold, err = w.b.Place(taking(i, c.id, c.amount)); err != nil {
					t.Fatal(err)
				}
				w.claims = append(w.claims, c)
			},
			"land": func(t *rapid.T) { w.pick(t, func(c *ownClaim) bool { return !c.landed }).landed = true },
			"settle": func(t *rapid.T) {
				c := w.pick(t, func(c *ownClaim) bool { return c.landed && c.held })
				c.hold.Settle()
				c.held = false
			},
			"undo": func(t *rapid.T) {
				c := w.pick(t, func(c *ownClaim) bool { return c.held && !c.there })
				c.hold.Undo()
				c.held, c.gone = false, true
			},
			"arrive": func(t *rapid.T) { w.pick(t, func(c *ownClaim) bool { return c.landed }).there = true },
			"delete": func(t *rapid.T) { w.pick(t, func(c *ownClaim) bool { return c.there && !c.held }).gone = true },
			"begin": func(t *rapid.T) {
				w.readings = append(w.readings, w.begin(w.all(t), rapid.IntRange(-9, hosts-1).Draw(t, "lacks")))
			},
			"read":         func(t *rapid.T) { w.advance(t, &w.readings, func(r *ownReading) { w.take(t, r) }) },
			"begin a look": func(t *rapid.T) { w.looks = append(w.looks, w.begin(w.all(t)[:1], -1)) },
			"look":         func(t *rapid.T) { w.advance(t, &w.looks, w.correct) },
		})
		for _, c := range w.claims {
			if c.held {
				c.landed = true
				c.hold.Settle()
			}
		}
		last := w.begin(w.all(t), -1)
		for len(last.hosts) > 0 {
			last.step(w)
		}
		w.take(t, last)
		for host := range hosts {
			if got, want := used(w.b)[host], w.used(host); got != want {
				t.Fatalf("in the end %d is shown as used of host %d, and %d is", got, host, want)
			}
		}
	})
}
