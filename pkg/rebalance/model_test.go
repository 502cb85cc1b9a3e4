// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// model is a cloud with its records: a migration of Nova advances with each look.
type model struct {
	t         tester
	boxes     []box
	groups    []placing.Group
	now       span.Instant
	untrusted string

	run     *rebalance.Run
	epoch   int64 // of the lease
	migrant map[string]*migration
	number  int
	most    int // the most migrations that were under way at once
	writes  int

	// Faults: meddle runs before each call, with its name; it may change the model, and
	// its error fails the call. after runs after each accepted move.
	meddle func(call string) error
	after  func(call string) error
	// fate decides how many looks a migration takes and whether it fails then.
	fate func(instance string) (looks int, fails bool)
	// If deaf, Nova refuses to abort migrations. aborts counts the requests.
	deaf   bool
	aborts int
}

type migration struct {
	id, to, status string
	looks          int
	fails          bool
}

func newModel(t tester, boxes ...box) *model {
	return &model{t: t, boxes: boxes, now: now, migrant: map[string]*migration{}, epoch: 1}
}

var errDied = errors.New("the process died")

func (m *model) meddled(call string) error {
	if m.meddle != nil {
		return m.meddle(call)
	}
	return nil
}

// find returns the box of an instance and its place there.
func (m *model) find(instance string) (*box, int) {
	for b := range m.boxes {
		if n := slices.IndexFunc(m.boxes[b].guests, func(i inventory.Instance) bool { return i.ID == instance }); n >= 0 {
			return &m.boxes[b], n
		}
	}
	return nil, -1
}

func (m *model) box(name string) *box {
	return &m.boxes[slices.IndexFunc(m.boxes, func(b box) bool { return b.name == name })]
}

func (m *model) Look(_ context.Context, instance string) (rebalance.Sight, error) {
	if err := m.meddled("look"); err != nil {
		return rebalance.Sight{}, err
	}
	m.proceed(instance)
	b, n := m.find(instance)
	if b == nil {
		return rebalance.Sight{}, fault.New(fault.NotFound, "there is no such instance")
	}
	s := rebalance.Sight{Host: b.name, Status: b.guests[n].Status, Task: b.guests[n].Task, Locked: b.guests[n].Locked}
	if g := m.migrant[instance]; g != nil {
		s.Migration = rebalance.Migration{ID: g.id, Status: g.status, Over: g.status != "running"}
	}
	return s, nil
}

// proceed advances a migration.
func (m *model) proceed(instance string) {
	g := m.migrant[instance]
	b, n := m.find(instance)
	if g == nil || b == nil || g.status != "running" {
		return
	}
	if g.looks--; g.looks > 0 {
		return
	}
	one := b.guests[n]
	one.Task = ""
	if g.fails {
		g.status, b.guests[n] = "failed", one
		return
	}
	g.status = "completed"
	b.guests = slices.Delete(b.guests, n, n+1)
	to := m.box(g.to)
	to.guests = append(to.guests, one)
}

// Move fails if its time is over by the clock of the model.
func (m *model) Move(ctx context.Context, instance, host string) error {
	left := time.Duration(1 << 62)
	if end, bounded := ctx.Deadline(); bounded {
		left = time.Until(end)
	}
	begun := m.now
	if err := m.meddled("move"); err != nil {
		return err
	}
	b, n := m.find(instance)
	switch {
	case time.Duration(m.now-begun)*time.Second >= left:
		return fault.New(fault.Unavailable, "it took too long")
	case b == nil:
		return fault.New(fault.NotFound, "there is no such instance")
	case b.guests[n].Task != "":
		return fault.New(fault.Conflict, "the instance is busy")
	}
	m.number++
	g := &migration{id: fmt.Sprint("m", m.number), to: host, status: "running", looks: 2}
	if m.fate != nil {
		g.looks, g.fails = m.fate(instance)
	}
	m.migrant[instance] = g
	b.guests[n].Task = "migrating"
	under := 0
	for _, g := range m.migrant {
		if g.status == "running" {
			under++
		}
	}
	m.most = max(m.most, under)
	if m.after != nil {
		return m.after("move")
	}
	return nil
}

func (m *model) Abort(_ context.Context, instance string) error {
	m.aborts++
	if err := m.meddled("abort"); err != nil {
		return err
	}
	if m.deaf {
		return fault.New(fault.Unavailable, "no answer")
	}
	if g := m.migrant[instance]; g != nil && g.status == "running" {
		g.looks, g.fails = 1, true
	}
	return nil
}

func (m *model) Take(context.Context, string, time.Duration) (job.Lease, bool, error) {
	return job.Lease{Name: "packing", Epoch: m.epoch}, true, nil
}

func (m *model) PackingRun(_ context.Context, id string) (rebalance.Run, error) {
	if m.run == nil || m.run.ID != id {
		return rebalance.Run{}, fault.New(fault.NotFound, "there is no such run")
	}
	return copied(*m.run), nil
}

func (m *model) PackingRuns(context.Context, int) ([]rebalance.Run, error) {
	if m.run == nil {
		return nil, nil
	}
	return []rebalance.Run{copied(*m.run)}, nil
}

func copied(r rebalance.Run) rebalance.Run {
	r.Progress = slices.Clone(r.Progress)
	return r
}

func (m *model) AddPackingRun(_ context.Context, r rebalance.Run) error {
	if m.run != nil && !m.run.Over() {
		return fault.New(fault.Conflict, "another is not over")
	}
	m.run = new(copied(r))
	return nil
}

func (m *model) ChangePackingRun(_ context.Context, lease job.Lease, id string, change func(*rebalance.Run) error) (rebalance.Run, error) {
	if err := m.meddled("store"); err != nil {
		return rebalance.Run{}, err
	}
	if lease != (job.Lease{}) && lease.Epoch != m.epoch {
		return rebalance.Run{}, errors.New("the lease was lost")
	}
	if m.run == nil || m.run.ID != id {
		return rebalance.Run{}, fault.New(fault.NotFound, "there is no such run")
	}
	r := copied(*m.run)
	if err := change(&r); err != nil {
		return r, err
	}
	m.run = &r
	m.writes++
	return copied(r), nil
}

func (m *model) situation(context.Context) (rebalance.Situation, error) {
	if err := m.meddled("read"); err != nil {
		return rebalance.Situation{}, err
	}
	return *situation(m.t, m.boxes, m.groups...), nil
}

// carrier returns the executor of a process.
func (m *model) carrier() *rebalance.Executor {
	return rebalance.NewExecutor(rebalance.ExecutorOptions{
		Records: m, Archive: m, Leases: m, Cloud: m, Situation: m.situation, Untrusted: func() string { return m.untrusted },
		Timeout: 60, MostFailed: 2, Every: time.Second, Now: func() span.Instant { return m.now }, Log: slog.New(slog.DiscardHandler),
	})
}

func (m *model) console() *rebalance.Admin {
	return &rebalance.Admin{
		Records: m, Archive: m, Situation: m.situation, Untrusted: func() string { return m.untrusted }, Ordered: func() {},
		Now: func() span.Instant { return m.now }, NewID: func() string { return "run" },
	}
}

// apply starts a run.
func (m *model) apply(o rebalance.Options) rebalance.Run {
	m.t.Helper()
	r, err := m.console().Apply(context.Background(), "ann", o, "")
	if err != nil {
		m.t.Fatal("apply:", err)
	}
	return r
}

// work runs a process for at most this many seconds, until the run is over. If a call fails with
// errDied, another process continues.
func (m *model) work(seconds int) {
	m.t.Helper()
	c := m.carrier()
	for range seconds {
		if m.run.Over() {
			return
		}
		if err := c.Step(context.Background()); errors.Is(err, errDied) {
			m.epoch++
			c = m.carrier()
		}
		m.now++
	}
}

// progress returns the states of the moves.
func (m *model) progress() (list []rebalance.State) {
	for _, p := range m.run.Progress {
		list = append(list, p.State)
	}
	return list
}

// whole fails unless every instance is on one host and no host holds more than it has.
func (m *model) whole(ids []string) {
	m.t.Helper()
	on := map[string]int{}
	for _, b := range m.boxes {
		used := int64(0)
		for _, g := range b.guests {
			used += g.Flavor.Resources.MemoryMB
			on[g.ID]++
		}
		if used > b.memory {
			m.t.Fatal(b.name, "holds", used, "of", b.memory, "MB")
		}
	}
	for _, id := range ids {
		if on[id] != 1 {
			m.t.Fatal(id, "is on", on[id], "hosts")
		}
	}
}
