package inventory

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/pkg/turns"
)

// Board has the current states of the hosts: those of the last reading of the cloud, with
// what has been claimed since. It is safe for concurrent use. Load never waits; Place waits
// for other plans only, and no longer than its context allows; all else waits for moments
// only, in which nobody plans.
//
// It errs to one side: what is claimed through it is never missing from the states. A
// claim that becomes known to Placement while the hosts are being read may count twice
// until the next reading. Victims leave with the plan that takes their room: no other finds
// them. What they leave over, and have until they are gone, counts as a take of theirs in the
// same plan. Who gives a victim its room back places that first in the same way, and settles it.
type Board struct {
	current atomic.Pointer[States]
	entry   *turns.Gate // for one who enters a plan, or plans alone; passed before mu is locked

	mu     sync.Mutex            // guards what follows, and changes of current
	clock  Mark                  // of the last event
	base   *States               // the last reading, corrected by looks
	read   Mark                  // when it began
	looks  map[string]correction // by host; those that began after it did
	claims []*claim              // that it does not contain, in the order in which they were made
	freed  map[string]Mark       // hosts that something has left since
}

// Mark is a moment in the life of a board. The zero Mark is before all others.
type Mark uint64

// correction is what one host was found to have, after a reading of all began, and what
// each of its consumers holds of that.
type correction struct {
	began  Mark
	stocks map[string]Stock
	holds  map[string]map[string]int64
}

// claim is what one consumer takes of one host. Hosts have their names here, as their
// places change from one reading to the next.
type claim struct {
	host    string
	take    Take
	settled Mark // 0 is not yet
	// arriving says that its amounts are in the reading, but its instance, which is still
	// on its way, is not.
	arriving bool
}

// Hold is what was planned on a board and counts there.
type Hold struct {
	board  *Board
	claims []*claim // none once it is settled or undone
}

// NewBoard gives a board without states.
func NewBoard() *Board {
	return &Board{entry: turns.New(1, 0), looks: map[string]correction{}, freed: map[string]Mark{}}
}

// Load gives the current states; nil before the first reading.
func (b *Board) Load() *States { return b.current.Load() }

// Begin gives the mark that a reading of the cloud has to have, before it begins.
func (b *Board) Begin() Mark {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tick()
}

func (b *Board) tick() Mark {
	b.clock++
	return b.clock
}

// Take makes s, which were read after m, the current states. What was settled before m is
// contained in them; all else that is held is laid over them, but for hosts that are gone.
// A reading that began before the current one is dropped.
//
// underWay says of an instance that is not on the host where it was placed whether it
// is still on its way: then the host counts it on. nil is that none is.
func (b *Board) Take(m Mark, s *States, underWay func(instance string) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.base != nil && m < b.read {
		return
	}
	maps.DeleteFunc(b.looks, func(_ string, c correction) bool { return c.began < m })
	b.base, b.read = s.having(b.looks), m
	b.claims = slices.DeleteFunc(b.claims, func(c *claim) bool {
		if c.settled == 0 || c.settled > m {
			return false
		}
		c.arriving = true
		return underWay == nil || !underWay(c.take.Instance)
	})
	maps.DeleteFunc(b.freed, func(_ string, left Mark) bool { return left < m })
	b.lay()
}

// Freed notes that an instance has left the host, so that there may be more room than the
// states have. A host that they do not have is left alone.
func (b *Board) Freed(host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.base == nil {
		return
	}
	if i, there := b.base.Index(host); there {
		b.freed[b.base.Host(i).Name] = b.tick()
	}
}

// Correct takes over what one host has, and what of that each consumer holds, by its id and
// by resource class; both were read after m. What was settled on it before m is contained in
// that. A host that the states do not have is left alone.
func (b *Board) Correct(m Mark, host string, stocks map[string]Stock, holds map[string]map[string]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.base == nil || m < b.read || m < b.looks[host].began {
		return
	}
	b.looks[host] = correction{began: m, stocks: stocks, holds: holds}
	b.base = b.base.having(map[string]correction{host: b.looks[host]})
	b.layOn(host)
}

// Settle says that Placement has what is held, or may have it: nobody knows what became
// of a request without an answer. The next reading tells. After Undo it does nothing.
func (h *Hold) Settle() {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	now := h.board.tick()
	for _, c := range h.claims {
		c.settled = now
	}
	h.claims = nil
}

// Undo says that Placement does not have what is held. After Settle it does nothing, so
// that it can be deferred.
func (h *Hold) Undo() {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	if len(h.claims) == 0 {
		return
	}
	undone, hosts := make(map[*claim]bool, len(h.claims)), make([]string, len(h.claims))
	for i, c := range h.claims {
		undone[c], hosts[i] = true, c.host
	}
	h.board.claims = slices.DeleteFunc(h.board.claims, func(c *claim) bool { return undone[c] })
	h.claims = nil
	h.board.layOn(hosts...)
}

// Unclear names the hosts on which there may be more room than the states have: where an
// instance has left, and where a claim may count twice, since it was settled after the
// last reading began, which may contain it all the same. A look at them tells.
func (b *Board) Unclear() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	unclear := map[string]bool{}
	for host, left := range b.freed {
		if b.looks[host].began < left {
			unclear[host] = true
		}
	}
	for _, c := range b.claims {
		if c.settled != 0 && !c.arriving && b.looks[c.host].began < c.settled {
			unclear[c.host] = true
		}
	}
	return slices.Sorted(maps.Keys(unclear))
}

// lay makes the current states: the base, with all that is held.
func (b *Board) lay() {
	b.current.Store(b.base.With(b.takes(func(int) bool { return true })))
}

// layOn makes the current states where only what is on these hosts, or held there, has
// changed.
func (b *Board) layOn(hosts ...string) {
	if b.base == nil {
		return
	}
	rows := make(map[int]*HostState, len(hosts))
	for _, host := range hosts {
		if i, there := b.base.Index(host); there {
			rows[i] = b.base.Host(i)
		}
	}
	held := b.takes(func(i int) bool { return rows[i] != nil })
	b.current.Store(b.Load().renewing(rows).With(held))
}

// takes are what is held on some of the hosts of the base, which on chooses by place.
func (b *Board) takes(on func(i int) bool) []Take {
	takes := make([]Take, 0, len(b.claims))
	for _, c := range b.claims {
		i, there := b.base.Index(c.host)
		if !there || !on(i) {
			continue
		}
		t := c.take
		t.Host = i
		if look, ok := b.looks[c.host]; c.arriving || ok && c.settled != 0 && c.settled < look.began {
			t.Counted = true
		}
		takes = append(takes, t)
	}
	return takes
}

// having gives the states with what some hosts were found to have.
func (s *States) having(looks map[string]correction) *States {
	rows := make(map[int]*HostState, len(looks))
	for name, look := range looks {
		if i, there := s.Index(name); there {
			h := *s.Host(i)
			h.Stocks, h.Instances = look.stocks, holding(h.Instances, look.holds)
			rows[i] = &h
		}
	}
	return s.renewing(rows)
}

// holding gives the instances with what they hold by now, the preemptible ones of them.
func holding(instances []Instance, holds map[string]map[string]int64) []Instance {
	if !slices.ContainsFunc(instances, func(i Instance) bool { return i.Preemptible }) {
		return instances
	}
	instances = slices.Clone(instances)
	for n := range instances {
		if one := &instances[n]; one.Preemptible {
			one.Holds = holds[one.ID]
		}
	}
	return instances
}
