// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/pkg/turns"
)

// LiveState contains the present states of the hosts: the last reading of the cloud plus everything
// that was claimed since. It is safe for concurrent use. Load never waits. Place waits only for
// other plans, and no longer than its context allows. All other methods hold a lock for a moment;
// no plan is made under the lock.
//
// It may count too much but never too little: what was claimed through it is never missing from the
// states. A claim that reaches Placement while the hosts are being read may count twice until the
// next reading. Victims leave the states with the plan that takes their room, so no other plan
// finds them. The part of its allocation that a victim keeps until it is deleted counts in the same
// plan. A caller that restores a victim's allocation places it first in the same way and confirms
// it.
type LiveState struct {
	current atomic.Pointer[States]
	entry   *turns.Gate // passed before mu is locked, by plans that enter or that are made alone

	mu          sync.Mutex             // guards the fields below, and changes of current
	clock       ReadVersion            // of the last event
	base        *States                // the last reading with the corrections
	read        ReadVersion            // when it began
	corrections map[string]correction  // by host; those that began after the reading
	claims      []*claim               // those that base does not contain, in the order in which they were made
	departures  map[string]ReadVersion // hosts that an instance has left since the reading
}

// ReadVersion is a logical time of a LiveState; a larger one is later. The zero ReadVersion
// precedes all others.
type ReadVersion uint64

// correction is a reading of one host that began after the last reading of all hosts: its stocks,
// and the amounts of them that each consumer has.
type correction struct {
	began  ReadVersion
	stocks map[string]Stock
	holds  map[string]map[string]int64
}

// claim is the amounts that one consumer has on one host. It contains the name of the host, because
// the host's index changes from one reading to the next.
type claim struct {
	host      string
	take      Take
	confirmed ReadVersion // when it was confirmed; 0 means not yet
	// arriving is true if the amounts of the claim are in the reading but its instance is not,
	// because it is still on its way.
	arriving bool
}

// Hold is a set of claims that LiveState counts until the caller confirms or undoes it.
type Hold struct {
	state  *LiveState
	claims []*claim // none after Confirm or Undo
}

// NewLiveState returns a LiveState without states.
func NewLiveState() *LiveState {
	return &LiveState{entry: turns.New(1, 0), corrections: map[string]correction{}, departures: map[string]ReadVersion{}}
}

// Load returns the current states; nil before the first reading.
func (b *LiveState) Load() *States { return b.current.Load() }

// BeginRead returns the version for a reading of the cloud. Call it before the reading begins.
func (b *LiveState) BeginRead() ReadVersion {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tick()
}

func (b *LiveState) tick() ReadVersion {
	b.clock++
	return b.clock
}

// Replace makes s, which was read after m, the current states. Claims confirmed before m are
// contained in s; all others are added to it, except those on hosts that are gone. A reading
// that began before the current one is dropped.
//
// underWay reports whether an instance that is not on the host where it was placed is still on
// its way; the host then keeps counting it. A nil underWay means that none is.
func (b *LiveState) Replace(m ReadVersion, s *States, underWay func(instance string) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.base != nil && m < b.read {
		return
	}
	maps.DeleteFunc(b.corrections, func(_ string, c correction) bool { return c.began < m })
	b.base, b.read = s.withCorrections(b.corrections), m
	b.claims = slices.DeleteFunc(b.claims, func(c *claim) bool {
		if c.confirmed == 0 || c.confirmed > m {
			return false
		}
		c.arriving = true
		return underWay == nil || !underWay(c.take.Instance)
	})
	maps.DeleteFunc(b.departures, func(_ string, left ReadVersion) bool { return left < m })
	b.rebuild()
}

// InstanceLeft records that an instance has left the host, so that the host may have more room than
// the states show. Unknown hosts are ignored.
func (b *LiveState) InstanceLeft(host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.base == nil {
		return
	}
	if i, there := b.base.Index(host); there {
		b.departures[b.base.Host(i).Name] = b.tick()
	}
}

// CorrectHost replaces one host's stocks and what each consumer, by its id, holds of each resource
// class, with values read after m. Claims confirmed before m are already included. Unknown
// hosts are ignored.
func (b *LiveState) CorrectHost(m ReadVersion, host string, stocks map[string]Stock, holds map[string]map[string]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.base == nil || m < b.read || m < b.corrections[host].began {
		return
	}
	b.corrections[host] = correction{began: m, stocks: stocks, holds: holds}
	b.base = b.base.withCorrections(map[string]correction{host: b.corrections[host]})
	b.rebuildHosts(host)
}

// Confirm records that Placement has granted the claims, or may have because a request was not
// answered. The next reading shows which. Confirm does nothing after Undo.
func (h *Hold) Confirm() {
	h.state.mu.Lock()
	defer h.state.mu.Unlock()
	now := h.state.tick()
	for _, c := range h.claims {
		c.confirmed = now
	}
	h.claims = nil
}

// Undo removes the claims, which Placement has not granted. It does nothing after Confirm, so that
// callers can defer it.
func (h *Hold) Undo() {
	h.state.mu.Lock()
	defer h.state.mu.Unlock()
	if len(h.claims) == 0 {
		return
	}
	undone, hosts := make(map[*claim]bool, len(h.claims)), make([]string, len(h.claims))
	for i, c := range h.claims {
		undone[c], hosts[i] = true, c.host
	}
	h.state.claims = slices.DeleteFunc(h.state.claims, func(c *claim) bool { return undone[c] })
	h.claims = nil
	h.state.rebuildHosts(hosts...)
}

// UncertainHosts returns the names, sorted, of the hosts that may have more room than the states
// show: an instance has left, or a claim may count twice because it was confirmed after the
// beginning of a reading that may contain it. Reading such a host again removes the doubt.
func (b *LiveState) UncertainHosts() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	unclear := map[string]bool{}
	for host, left := range b.departures {
		if b.corrections[host].began < left {
			unclear[host] = true
		}
	}
	for _, c := range b.claims {
		if c.confirmed != 0 && !c.arriving && b.corrections[c.host].began < c.confirmed {
			unclear[c.host] = true
		}
	}
	return slices.Sorted(maps.Keys(unclear))
}

// rebuild sets the current states to the last reading plus all claims.
func (b *LiveState) rebuild() {
	b.current.Store(b.base.WithTaken(b.counted(func(int) bool { return true })))
}

// rebuildHosts sets the current states after the readings or claims of only these hosts have
// changed.
func (b *LiveState) rebuildHosts(hosts ...string) {
	if b.base == nil {
		return
	}
	rows := make(map[int]*HostState, len(hosts))
	for _, host := range hosts {
		if i, there := b.base.Index(host); there {
			rows[i] = b.base.Host(i)
		}
	}
	held := b.counted(func(i int) bool { return rows[i] != nil })
	b.current.Store(b.Load().withRows(rows).WithTaken(held))
}

// counted returns the claims on the hosts of base for whose index on returns true.
func (b *LiveState) counted(on func(i int) bool) []Take {
	takes := make([]Take, 0, len(b.claims))
	for _, c := range b.claims {
		i, there := b.base.Index(c.host)
		if !there || !on(i) {
			continue
		}
		t := c.take
		t.Host = i
		if look, ok := b.corrections[c.host]; c.arriving || ok && c.confirmed != 0 && c.confirmed < look.began {
			t.Counted = true
		}
		takes = append(takes, t)
	}
	return takes
}

// withCorrections returns the states with the corrected stocks and holdings of some hosts.
func (s *States) withCorrections(looks map[string]correction) *States {
	rows := make(map[int]*HostState, len(looks))
	for name, look := range looks {
		if i, there := s.Index(name); there {
			h := *s.Host(i)
			h.Stocks, h.Instances = look.stocks, withHoldings(h.Instances, look.holds)
			rows[i] = &h
		}
	}
	return s.withRows(rows)
}

// withHoldings returns the instances; the Holds of preemptible ones are those in holds.
func withHoldings(instances []Instance, holds map[string]map[string]int64) []Instance {
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
