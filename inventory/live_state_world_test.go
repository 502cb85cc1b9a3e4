// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
)

// world is a cloud with a live state in front of it: a Placement and a Nova made of lists.
// Its steps come in any order.
type world struct {
	b         *inventory.LiveState
	consumers []*consumer // all that ever existed
	readings  []*ownReading
	looks     []*ownReading // of one host each
	taken     *ownReading   // the last reading that the live state accepted
	looked    [hosts]*ownReading
}

// hosts is the number of hosts in the world; their names are numbers. The other hosts have
// VCPUs too, so that CUSTOM_RARE is on few of them.
const hosts = 3

var others = func() (rows []inventory.HostState) {
	for n := range 30 {
		rows = append(rows, inventory.HostState{Name: fmt.Sprint("other-", n), Stocks: cpus(1)})
	}
	return rows
}()

// consumer holds resources of a host, or wants to.
type consumer struct {
	id                  string
	host                int
	amounts             amounts
	has                 bool // in Placement
	there               bool // Nova shows it on the host
	preemptible, locked bool
	gone                bool // deleted, or given up

	// For a consumer placed through the live state; hold is nil after Confirm or Undo.
	placed  bool
	hold    *inventory.Hold
	asks    bool // Placement does not know it yet
	victims []*consumer
	// returning is true while its victims are about to get their resources back.
	returning bool

	left bool // it is a victim
}

func (c *consumer) evictable() bool {
	return c.there && c.preemptible && !c.locked && len(c.amounts) > 0
}

func (c *consumer) undo() {
	c.hold.Undo()
	c.hold = nil
}

// landable reports whether Placement would accept the claim. Placement refuses a claim whose
// victims have changed since.
func (c *consumer) landable() bool {
	return c.asks && !c.gone && !slices.ContainsFunc(c.victims, func(v *consumer) bool { return !v.has })
}

func (c *consumer) land() {
	for _, v := range c.victims {
		v.has = false
	}
	c.has, c.asks = true, false
}

// giveUp undoes a claim that Placement does not have.
func (c *consumer) giveUp() {
	for _, v := range c.victims {
		v.left = false
	}
	c.undo()
	c.has, c.gone = false, true
}

// returned restores the victims' resources in Placement, in one transaction.
func (c *consumer) returned() {
	for _, v := range c.victims {
		v.has, v.gone = true, false
	}
	if c.hold != nil {
		c.undo()
	}
	c.has, c.gone, c.returning = false, true, false
}

// refused leaves the victims without their resources.
func (c *consumer) refused() {
	for _, v := range c.victims {
		v.undo()
		v.placed, v.left = false, true
	}
	c.returning = false
}

// ownReading is a reading that reads Nova first and then what consumers hold, one host after
// the other.
type ownReading struct {
	mark     inventory.ReadVersion
	hosts    []int // not read yet
	lacks    int   // the host that the reading lacks; -1 is none
	on       [hosts][]inventory.Instance
	held     [hosts]map[string]map[string]int64
	underWay map[string]bool
}

func (w *world) begin(some []int, lacks int) *ownReading {
	r := &ownReading{mark: w.b.BeginRead(), hosts: some, lacks: lacks, underWay: map[string]bool{}}
	for _, c := range w.consumers {
		if c.there {
			r.on[c.host] = append(r.on[c.host], inventory.Instance{ID: c.id, Status: "ACTIVE", Preemptible: c.preemptible, Locked: c.locked})
		}
		r.underWay[c.id] = !c.there && !c.gone
	}
	return r
}

func (r *ownReading) step(w *world) {
	host := r.hosts[0]
	r.hosts = r.hosts[1:]
	r.held[host] = map[string]map[string]int64{}
	for _, c := range w.consumers {
		if c.host == host && c.has && len(c.amounts) > 0 {
			r.held[host][c.id] = c.amounts
		}
	}
}

// stocksWith returns the stocks of a host whose consumers hold that much.
func stocksWith(held map[string]map[string]int64) stocks {
	all := stocks{"VCPU": {Total: 100, Ratio: 1}, "CUSTOM_RARE": {Total: 10, Ratio: 1}}
	for _, one := range held {
		for class, amount := range one {
			stock := all[class]
			stock.Used += amount
			all[class] = stock
		}
	}
	return all
}

func (w *world) take(t *rapid.T, r *ownReading) {
	rows := slices.Clone(others)
	for host := range hosts {
		if host == r.lacks {
			continue
		}
		h := inventory.HostState{Name: fmt.Sprint(host), Stocks: stocksWith(r.held[host]), Instances: slices.Clone(r.on[host])}
		for n := range h.Instances {
			if one := &h.Instances[n]; one.Preemptible {
				one.Holds = r.held[host][one.ID]
			}
		}
		rows = append(rows, h)
	}
	s, err := inventory.NewStates(rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.b.Replace(r.mark, s, func(id string) bool { return r.underWay[id] })
	if w.taken == nil || r.mark >= w.taken.mark {
		w.taken = r
	}
}

func (w *world) correct(r *ownReading) {
	host := slices.IndexFunc(r.held[:], func(held map[string]map[string]int64) bool { return held != nil })
	w.b.CorrectHost(r.mark, fmt.Sprint(host), stocksWith(r.held[host]), r.held[host])
	if look := w.looked[host]; r.mark >= w.taken.mark && (look == nil || r.mark >= look.mark) {
		w.looked[host] = r
	}
}

// shown returns what the consumers of a host held when the live state last read it.
func (w *world) shown(host int) map[string]map[string]int64 {
	if look := w.looked[host]; look != nil && look.mark > w.taken.mark {
		return look.held[host]
	}
	return w.taken.held[host]
}

// check fails if the live state offers resources that are taken or the same victim twice, or
// if its columns differ from its rows.
func (w *world) check(t *rapid.T) {
	s := w.b.Load()
	consistent(t, s)
	for host := range hosts {
		i, there := s.Index(fmt.Sprint(host))
		if there != (w.taken.lacks != host) {
			t.Fatalf("host %d exists: %v", host, there)
		}
		if there {
			w.checkInstances(t, s, i, host)
			w.checkAmounts(t, s, i, host)
		}
	}
}

func (w *world) checkInstances(t *rapid.T, s *inventory.States, i, host int) {
	on := map[string]inventory.Instance{}
	for _, one := range s.InstancesOn(i) {
		on[one.ID] = one
	}
	for _, c := range w.consumers {
		one, there := on[c.id]
		switch {
		case c.host != host:
		case c.left && one.Evictable():
			t.Fatalf("%s is evictable although it is a victim already", c.id)
		case c.placed && !c.gone && !c.left && !there:
			t.Fatalf("instance %s is not on host %d", c.id, host)
		}
	}
}

func (w *world) checkAmounts(t *rapid.T, s *inventory.States, i, host int) {
	shown, listed := w.shown(host), w.taken.on[host]
	for _, class := range []string{"VCPU", "CUSTOM_RARE"} {
		var all, firm int64 // the least that is used, and the part of it that no eviction can free
		for _, c := range w.consumers {
			_, seen := shown[c.id]
			if c.host != host || c.left || !seen && (!c.placed || c.gone) {
				continue
			}
			all += c.amounts[class]
			yields := seen && slices.ContainsFunc(listed, func(o inventory.Instance) bool { return o.ID == c.id && o.Preemptible && !o.Locked })
			if !yields {
				firm += c.amounts[class]
			}
		}
		used, yield := s.Column(class).Used[i], s.Column(class).Evictable[i]
		if used < all || used-yield < firm || yield < 0 {
			t.Fatalf("host %d: used %d %s, evictable %d; want at least %d used and %d not evictable", host, used, class, yield, all, firm)
		}
	}
}

func (w *world) pick(t *rapid.T, which func(c *consumer) bool) *consumer {
	some := slices.DeleteFunc(slices.Clone(w.consumers), func(c *consumer) bool { return !which(c) })
	if len(some) == 0 {
		t.Skip("there is no such consumer")
	}
	return rapid.SampledFrom(some).Draw(t, "consumer")
}

// come adds a consumer of a host.
func (w *world) come(t *rapid.T, host int) *consumer {
	c := &consumer{id: fmt.Sprint("i", len(w.consumers)), host: host, amounts: amounts{}, preemptible: rapid.Bool().Draw(t, "preemptible")}
	for n, class := range []string{"VCPU", "CUSTOM_RARE"} {
		if amount := rapid.Int64Range(0, 4-2*int64(n)).Draw(t, class); amount > 0 {
			c.amounts[class] = amount
		}
	}
	w.consumers = append(w.consumers, c)
	return c
}

// place places c on its host through the live state. Other steps happen while its plan is
// made; other plans happen only while it is made for the first time.
func (w *world) place(t *rapid.T, c *consumer) {
	plans := 0
	h, err := w.b.Place(context.Background(), "project", func(s *inventory.States) ([]inventory.Take, error) {
		take := inventory.Take{Instance: c.id, Resources: c.amounts}
		var there bool
		if take.Host, there = s.Index(fmt.Sprint(c.host)); !there {
			t.Skip("the host does not exist")
		}
		if c.victims = nil; !c.preemptible {
			c.victims = w.drawVictims(t, s, take.Host)
		}
		for _, v := range c.victims {
			take.Victims = append(take.Victims, v.id)
		}
		if plans++; plans < 3 {
			w.meanwhile(t, plans == 1)
		}
		return []inventory.Take{take}, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.hold, c.placed = h, true
	for _, v := range c.victims {
		if v.left {
			t.Fatalf("%s is a victim of two plans", v.id)
		}
		v.left = true
	}
}

// meanwhile does some steps, or none.
func (w *world) meanwhile(t *rapid.T, places bool) {
	steps := map[string]func(*rapid.T){}
	for _, some := range []map[string]func(*rapid.T){w.ofOthers(), w.ofClaims(), w.ofReadings()} {
		maps.Copy(steps, some)
	}
	if !places {
		delete(steps, "place")
	}
	for range rapid.IntRange(-2, 2).Draw(t, "meanwhile") {
		steps[rapid.SampledFrom(slices.Sorted(maps.Keys(steps))).Draw(t, "step")](t)
	}
}

// drawVictims draws some of the evictable instances of host i of s.
func (w *world) drawVictims(t *rapid.T, s *inventory.States, i int) (victims []*consumer) {
	for _, one := range s.InstancesOn(i) {
		if one.Evictable() && rapid.Bool().Draw(t, "victim") {
			at := slices.IndexFunc(w.consumers, func(c *consumer) bool { return c.id == one.ID })
			victims = append(victims, w.consumers[at])
		}
	}
	return victims
}

func drawHost(t *rapid.T) int { return rapid.IntRange(0, hosts-1).Draw(t, "host") }

// all returns the hosts in a random order.
func all(t *rapid.T) []int { return rapid.Permutation([]int{0, 1, 2}).Draw(t, "order") }

// advance moves one of the readings some steps on, and finishes it after its last step.
func (w *world) advance(t *rapid.T, under *[]*ownReading, finish func(r *ownReading)) {
	if len(*under) == 0 {
		t.Skip("none is under way")
	}
	i := rapid.IntRange(0, len(*under)-1).Draw(t, "reading")
	r := (*under)[i]
	for range rapid.IntRange(1, hosts+1).Draw(t, "steps") {
		if len(r.hosts) == 0 {
			*under = slices.Delete(*under, i, i+1)
			finish(r)
			return
		}
		r.step(w)
	}
}

// readAll reads all hosts at once.
func (w *world) readAll(t *rapid.T) {
	r := w.begin(all(t), -1)
	for len(r.hosts) > 0 {
		r.step(w)
	}
	w.take(t, r)
}

// ofOthers returns the steps of consumers that do not use the live state.
func (w *world) ofOthers() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"others take": func(t *rapid.T) {
			c := w.come(t, drawHost(t))
			c.has, c.there = true, true
		},
		"others evict": func(t *rapid.T) {
			v := w.pick(t, func(c *consumer) bool { return c.has && c.evictable() && !c.placed })
			v.has = false
			w.come(t, v.host).has = true
		},
		"arrive": func(t *rapid.T) { w.pick(t, func(c *consumer) bool { return c.has && !c.there }).there = true },
		"leave": func(t *rapid.T) {
			c := w.pick(t, func(c *consumer) bool { return c.there && c.hold == nil && !c.returning && !c.gone })
			c.has, c.there, c.gone = false, false, true
		},
		"lock": func(t *rapid.T) {
			c := w.pick(t, func(c *consumer) bool { return c.preemptible && c.there })
			c.locked = !c.locked
		},
	}
}

// ofClaims returns the steps of consumers that use the live state.
func (w *world) ofClaims() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"place": func(t *rapid.T) {
			c := w.come(t, drawHost(t))
			w.place(t, c)
			c.asks = true
		},
		"land": func(t *rapid.T) { w.pick(t, (*consumer).landable).land() },
		"settle": func(t *rapid.T) {
			c := w.pick(t, func(c *consumer) bool { return c.has && c.hold != nil })
			c.hold.Confirm()
			c.hold = nil
		},
		"undo": func(t *rapid.T) {
			w.pick(t, func(c *consumer) bool {
				return c.hold != nil && !c.there && (!c.has || len(c.victims) == 0)
			}).giveUp()
		},
		"give back": func(t *rapid.T) {
			c := w.pick(t, func(c *consumer) bool {
				return c.has && !c.there && len(c.victims) > 0 && !c.returning &&
					!slices.ContainsFunc(c.victims, func(v *consumer) bool { return !v.there || v.hold != nil })
			})
			for _, v := range c.victims {
				v.hold = w.b.AddClaims([]string{fmt.Sprint(v.host)}, []inventory.Take{{Instance: v.id, Resources: v.amounts}})
				v.placed, v.left = true, false
			}
			c.returning = true
		},
		"give back lands":      func(t *rapid.T) { w.pick(t, func(c *consumer) bool { return c.returning }).returned() },
		"give back is refused": func(t *rapid.T) { w.pick(t, func(c *consumer) bool { return c.returning }).refused() },
	}
}

// ofReadings returns the steps of the readers that update the live state.
func (w *world) ofReadings() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"begin": func(t *rapid.T) {
			w.readings = append(w.readings, w.begin(all(t), rapid.IntRange(-9, hosts-1).Draw(t, "lacks")))
		},
		"read at once": w.readAll,
		"read":         func(t *rapid.T) { w.advance(t, &w.readings, func(r *ownReading) { w.take(t, r) }) },
		"begin a look": func(t *rapid.T) { w.looks = append(w.looks, w.begin([]int{drawHost(t)}, -1)) },
		"look":         func(t *rapid.T) { w.advance(t, &w.looks, w.correct) },
	}
}

// finish ends everything that is under way.
func (w *world) finish(t *rapid.T) {
	for _, c := range w.consumers {
		if c.returning {
			c.returned()
		}
	}
	for _, c := range w.consumers {
		switch {
		case c.hold == nil:
		case c.has:
			c.hold.Confirm()
			c.hold = nil
		default:
			c.giveUp()
		}
	}
	w.readAll(t)
}

func TestABoardNeverOffersWhatItHasGivenAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{b: inventory.NewLiveState()}
		for range rapid.IntRange(0, 6).Draw(t, "consumers") {
			c := w.come(t, drawHost(t))
			c.has, c.there = true, true
		}
		w.readAll(t)
		steps := map[string]func(*rapid.T){"": w.check}
		for _, some := range []map[string]func(*rapid.T){w.ofOthers(), w.ofClaims(), w.ofReadings()} {
			maps.Copy(steps, some)
		}
		t.Repeat(steps)
		w.finish(t)
		w.check(t)
		s := w.b.Load()
		for host := range hosts {
			i, _ := s.Index(fmt.Sprint(host))
			for class := range stocksWith(nil) {
				var used, yield int64
				for _, c := range w.consumers {
					if c.host == host && c.has {
						used += c.amounts[class]
						if c.evictable() {
							yield += c.amounts[class]
						}
					}
				}
				if got := s.Column(class); got.Used[i] != used || got.Evictable[i] != yield {
					t.Fatalf("in the end, %d %s of host %d are used, %d evictable; want %d and %d", got.Used[i], class, host, got.Evictable[i], used, yield)
				}
			}
		}
	})
}
