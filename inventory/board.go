package inventory

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Board has the current states of the hosts: those of the last reading of the cloud, with
// what has been claimed since. It is safe for concurrent use; who only looks never waits.
//
// It errs to one side: what is claimed through it is never missing from the states. A
// claim that becomes known to Placement while the hosts are being read may count twice
// until the next reading. Victims leave with the plan that takes their room: no other finds
// them. What they leave over, and have until they are gone, counts as a take of theirs in the
// same plan. Who gives a victim its room back places that first in the same way, and settles it.
type Board struct {
	current atomic.Pointer[States]
	mu      sync.Mutex
	clock   Mark                  // of the last event
	base    *States               // the last reading, corrected by looks
	read    Mark                  // when it began
	looks   map[string]correction // by host; those that began after it did
	claims  []*claim              // that it does not contain, in the order in which they were made
	freed   map[string]Mark       // hosts that something has left since
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
	return &Board{looks: map[string]correction{}, freed: map[string]Mark{}}
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
	b.lay()
}

// Place lets plan choose from the current states and counts what it takes at once, so
// that the next plan sees it; until then no other plan is made. It fails where plan
// does, and holds nothing then, and with an Unavailable fault before the first reading.
//
// Who places has to call Settle or Undo: a hold counts until then, through all readings.
func (b *Board) Place(plan func(*States) ([]Take, error)) (*Hold, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.current.Load()
	if s == nil {
		return nil, fault.New(fault.Unavailable, "the hosts of the cloud have not been read yet; try again in a moment")
	}
	takes, err := plan(s)
	if err != nil {
		return nil, err
	}
	h := &Hold{board: b, claims: make([]*claim, len(takes))}
	for i, t := range takes {
		h.claims[i] = &claim{host: s.Host(t.Host).Name, take: t}
	}
	b.claims = append(b.claims, h.claims...)
	b.current.Store(s.With(takes))
	return h, nil
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
	h.board.claims = slices.DeleteFunc(h.board.claims, func(c *claim) bool { return slices.Contains(h.claims, c) })
	h.claims = nil
	h.board.lay()
}

// Unclear names the hosts on which there may be more room than the states have: where an
// instance has left, and where a claim may count twice, since it was settled after the
// last reading began, which may contain it all the same. A look at them tells.
func (b *Board) Unclear() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var hosts []string
	for host, left := range b.freed {
		if b.looks[host].began < left {
			hosts = append(hosts, host)
		}
	}
	for _, c := range b.claims {
		if c.settled != 0 && !c.arriving && b.looks[c.host].began < c.settled && !slices.Contains(hosts, c.host) {
			hosts = append(hosts, c.host)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// lay makes the current states: the base, with what is held.
func (b *Board) lay() {
	takes := make([]Take, 0, len(b.claims))
	for _, c := range b.claims {
		i, there := b.base.Index(c.host)
		if !there {
			continue
		}
		t := c.take
		t.Host = i
		if look, ok := b.looks[c.host]; c.arriving || ok && c.settled != 0 && c.settled < look.began {
			t.Counted = true
		}
		takes = append(takes, t)
	}
	b.current.Store(b.base.With(takes))
}

// having gives the states with what some hosts were found to have.
func (s *States) having(looks map[string]correction) *States {
	next := *s
	next.rows, next.columns, next.rare, next.made = slices.Clone(s.rows), maps.Clone(s.columns), maps.Clone(s.rare), new(sync.Map)
	own := map[string]int{} // classes whose column is no longer that of s
	for name, look := range looks {
		i, there := s.Index(name)
		if !there {
			continue
		}
		h := *next.Host(i)
		h.Stocks, h.Instances = look.stocks, holding(h.Instances, look.holds)
		next.relay(s, i, &h, own)
	}
	return &next
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

// relay puts a host in the place of that of before, with its columns.
func (s *States) relay(before *States, i int, h *HostState, own map[string]int) {
	stocks := s.Host(i).Stocks
	s.rows.put(before.rows, i, h)
	for class := range stocks {
		if _, still := h.Stocks[class]; !still {
			s.restock(i, class, own)
		}
	}
	for class := range h.Stocks {
		s.restock(i, class, own)
	}
}

// restock makes the column of a class say what host i has of it by now.
func (s *States) restock(i int, class string, own map[string]int) {
	c, dense := s.columns[class]
	if !dense {
		places := s.rare[class]
		at, listed := slices.BinarySearch(places, i)
		switch _, has := s.Host(i).Stocks[class]; {
		case has && !listed:
			s.rare[class] = slices.Insert(slices.Clone(places), at, i)
		case !has && listed:
			s.rare[class] = slices.Delete(slices.Clone(places), at, at+1)
		}
		return
	}
	stock, has := s.Host(i).Stocks[class]
	switch used := has && c.differsInUse(i, stock); {
	case own[class] >= whole, used && own[class] >= useOnly:
	case used:
		next := *c
		next.Used, next.Yield = slices.Clone(c.Used), slices.Clone(c.Yield)
		c, own[class] = &next, useOnly
	default:
		c, own[class] = c.clone(), whole
	}
	s.columns[class] = c
	if used := has && own[class] == useOnly; used {
		c.Used[i], c.Yield[i] = stock.Used, s.Host(i).yield(class)
	} else if has {
		c.set(i, stock, s.Host(i).yield(class))
	} else {
		c.clear(i)
	}
}

// How much of a column is no longer that of before.
const (
	useOnly = 1 + iota
	whole
)
