package openstack

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Diagnostics tell what a server has used, as nova.Client does.
type Diagnostics interface {
	CPUTime(ctx context.Context, id string) (nova.CPUTime, error)
}

// Meter measures how many cores instances use, by Nova's diagnostics: the CPU time that has
// passed between two readings. Before there are two it is the mean since the guest was
// started, where its driver tells since when that is. It is safe for concurrent use.
//
// Nova asks the compute service of the server, and waits for it for a minute: where that is
// dead, which Nova learns late, nothing of the host is asked for a while.
type Meter struct {
	Compute Diagnostics
	Now     func() span.Instant

	mu     sync.Mutex
	last   map[string]reading      // by instance
	silent map[string]span.Instant // hosts, and instances, that did not tell, and when
}

// reading is what an instance had used at a moment, and what followed from that.
type reading struct {
	at   span.Instant
	time nova.CPUTime
	use  float64
}

const (
	// apart is how many seconds two readings are apart at least: shorter times say little.
	apart = 30
	// good is for how many seconds the use of a reading counts where there is no later one.
	good = 600
	// quiet is for how many seconds is not asked again who did not tell.
	quiet = 300
	// atOnce is how many instances are asked for at the same time: half of the calls to Nova
	// that can be under way, the rest of which is for others.
	atOnce = 4
	// perCall bounds the question for one instance, and perReading all of them: those that have
	// waited longest for it are asked for first.
	perCall, perReading = 4 * time.Second, 20 * time.Second
)

// guest is an instance to be asked for.
type guest struct{ id, host string }

// Use gives the cores that instances use, those of them for which that could be measured. It
// gets them by the hosts that they are on.
func (m *Meter) Use(ctx context.Context, instances map[string][]string) map[string]float64 {
	ctx, cancel := context.WithTimeout(ctx, perReading)
	defer cancel()
	var asking errgroup.Group
	asking.SetLimit(atOnce)
	for _, g := range m.due(instances) {
		asking.Go(func() error {
			m.ask(ctx, g)
			return nil
		})
	}
	_ = asking.Wait() // none of them fails
	m.mu.Lock()
	defer m.mu.Unlock()
	now, use, kept := m.Now(), map[string]float64{}, map[string]reading{}
	for _, ids := range instances {
		for _, id := range ids {
			r, is := m.last[id]
			if !is || now >= r.at.Add(good) {
				continue
			}
			if kept[id] = r; r.use >= 0 {
				use[id] = r.use
			}
		}
	}
	m.last = kept
	return use
}

// due gives those that are to be asked for, the ones with the oldest readings first.
func (m *Meter) due(instances map[string][]string) (list []guest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.Now()
	for who, at := range m.silent {
		if now >= at.Add(quiet) {
			delete(m.silent, who)
		}
	}
	for host, ids := range instances {
		for _, id := range ids {
			if r, was := m.last[id]; !was || now >= r.at.Add(apart) {
				list = append(list, guest{id, host})
			}
		}
	}
	slices.SortFunc(list, func(a, b guest) int {
		return cmp.Or(cmp.Compare(m.last[a.id].at, m.last[b.id].at), cmp.Compare(a.id, b.id))
	})
	return list
}

// ask reads what one instance has used.
func (m *Meter) ask(ctx context.Context, g guest) {
	if ctx.Err() != nil || m.isSilent(g) {
		return
	}
	call, cancel := context.WithTimeout(ctx, perCall)
	defer cancel()
	t, err := m.Compute.CPUTime(call, g.id)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.Now()
	switch {
	case err == nil:
		if m.last == nil {
			m.last = map[string]reading{}
		}
		m.last[g.id], _ = measure(m.last[g.id], t, now)
	case ctx.Err() != nil: // whether the host would have told is not known
	case fault.Is(err, fault.Invalid), fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound), fault.Is(err, fault.Denied):
		m.hush(g.id, now)
	default:
		m.hush(g.host, now)
	}
}

func (m *Meter) hush(who string, now span.Instant) {
	if m.silent == nil {
		m.silent = map[string]span.Instant{}
	}
	m.silent[who] = now
}

func (m *Meter) isSilent(g guest) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, host := m.silent[g.host]
	_, one := m.silent[g.id]
	return host || one
}

// measure gives the use that follows from a reading and the one before; the zero reading is
// none.
func measure(before reading, t nova.CPUTime, now span.Instant) (reading, bool) {
	passed := float64(now - before.at)
	again := before.at == 0 || t.Busy < before.time.Busy || t.Up > 0 && t.Up < before.time.Up // its guest was started anew
	switch {
	case !again && passed < apart:
		return before, before.use >= 0
	case !again:
		return reading{now, t, (t.Busy - before.time.Busy) / passed}, true
	case t.Up > 0:
		return reading{now, t, t.Busy / t.Up}, true
	}
	return reading{now, t, -1}, false
}
