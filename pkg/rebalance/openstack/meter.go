// SPDX-License-Identifier: Apache-2.0

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

// Diagnostics reads the CPU time of a server, as nova.Client does.
type Diagnostics interface {
	CPUTime(ctx context.Context, id string) (nova.CPUTime, error)
}

// Meter measures how many cores instances use: the CPU time between two readings of Nova's
// diagnostics. With a single reading it is the mean since the instance was started, if the
// driver reports its uptime. A Meter is safe for concurrent use.
//
// Nova forwards each request to the compute service of the server and waits up to a minute for its
// answer. Nova notices late that a compute service is down. After a failure the Meter therefore
// reads nothing from that host for a while.
type Meter struct {
	Compute Diagnostics
	Now     func() span.Instant

	mu     sync.Mutex
	last   map[string]reading      // by id of the instance
	silent map[string]span.Instant // hosts and instances that did not answer, with the time
}

// reading is the CPU time of an instance at an instant, and the use in cores since the reading
// before; -1 means unknown.
type reading struct {
	at   span.Instant
	time nova.CPUTime
	use  float64
}

const (
	// apart is the least number of seconds between two readings: shorter intervals are
	// imprecise.
	apart = 30
	// good is the number of seconds for which a reading is valid.
	good = 600
	// quiet is the number of seconds for which a host or an instance that did not answer is not
	// read again.
	quiet = 300
	// atOnce is the number of concurrent readings: half of the concurrent calls to Nova, so
	// that the other half is left for other work.
	atOnce = 4
	// perCall bounds the reading of one instance, and perReading that of all. The instances
	// with the oldest readings come first.
	perCall, perReading = 4 * time.Second, 20 * time.Second
)

// target is an instance to read.
type target struct{ id, host string }

// Use returns how many cores each instance uses, by its id, for the instances that it could
// measure. instances contains the ids of the instances by host.
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
	_ = asking.Wait() // none of them returns an error
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

// due returns the instances that must be read, those with the oldest readings first.
func (m *Meter) due(instances map[string][]string) (list []target) {
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
				list = append(list, target{id, host})
			}
		}
	}
	slices.SortFunc(list, func(a, b target) int {
		return cmp.Or(cmp.Compare(m.last[a.id].at, m.last[b.id].at), cmp.Compare(a.id, b.id))
	})
	return list
}

// ask reads the CPU time of one instance.
func (m *Meter) ask(ctx context.Context, g target) {
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
	case ctx.Err() != nil: // ctx ended: the host may be well
	case fault.Is(err, fault.Invalid), fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound), fault.Is(err, fault.Denied):
		m.hush(g.id, now)
	default:
		m.hush(g.host, now)
	}
}

// hush records that a host or an instance has not answered at now.
func (m *Meter) hush(who string, now span.Instant) {
	if m.silent == nil {
		m.silent = map[string]span.Instant{}
	}
	m.silent[who] = now
}

// isSilent reports whether the host or the instance has not answered a moment ago.
func (m *Meter) isSilent(g target) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, host := m.silent[g.host]
	_, one := m.silent[g.id]
	return host || one
}

// measure returns the reading for the CPU time t at now, with the use since the reading before it,
// and whether the use is known. The zero reading means that there is none before.
func measure(before reading, t nova.CPUTime, now span.Instant) (reading, bool) {
	passed := float64(now - before.at)
	again := before.at == 0 || t.Busy < before.time.Busy || t.Up > 0 && t.Up < before.time.Up // the instance was restarted
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
