// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// town is a cloud with a calendar of reservations, a clock and an enforcer. Its clock moves
// only while the enforcer waits, or if a test moves it.
type town struct {
	t judge
	*line
	*upkeep.Enforcer

	rules     upkeep.Rules
	untrusted string
	// ails makes hosts fail, sleep or leave the inventory.
	ails map[string]func(*inventory.Host)
	gone map[string]bool
	log  bytes.Buffer
	// hinted marks the owners' instances by their hint instead of their flavor.
	hinted bool
	// waited, if not nil, runs after each second for which the enforcer waits.
	waited func()

	guard  sync.Mutex
	now    span.Instant
	bubble time.Time                          // if not zero, the start of a synctest bubble whose clock the town uses
	known  map[string]reservation.Reservation // the records
	live   map[string]bool                    // the reservations that the booking service knows
	// departing returns the deadlines of best-effort servers; nil means that there are none.
	departing func(ctx context.Context, servers ...string) (map[string]span.Instant, error)
}

// judge is a *testing.T or a *rapid.T.
type judge interface {
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Helper()
	Context() context.Context
}

func (w *town) ctx() context.Context { return w.t.Context() }

const noon = span.Instant(1_000_000)

func newTown(t judge, hosts ...string) *town {
	w := &town{
		t: t, now: noon, known: map[string]reservation.Reservation{}, live: map[string]bool{},
		ails: map[string]func(*inventory.Host){}, gone: map[string]bool{},
		rules: upkeep.Rules{
			Fence:  fence.Rules{Ahead: fence.Forever, Prepare: 600},
			Normal: upkeep.OrderWait, LeadTime: 600, Preemptible: upkeep.OrderDelete, Eviction: 120, EndGrace: 60,
			Left: upkeep.OrderMigrate,
		},
	}
	w.line = &line{modelCloud: newModelCloud(hosts...), town: w, calls: map[string]int{}, wrong: map[string]error{}, budget: -1}
	w.restart()
	return w
}

// restart replaces the town's enforcer by a new one without memory.
func (w *town) restart() {
	w.Enforcer = upkeep.NewEnforcer(upkeep.EnforcerOptions{
		Fence: w.line, Instances: w.line, Promises: w, Records: w, Snapshot: w.snapshot,
		Untrusted: func() string { return w.untrusted }, Departing: w.departing, Rules: w.rules, Now: w.Now,
		Elapsed: func() time.Duration { return time.Duration(w.Now()) * time.Second },
		Wait:    w.wait, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
}

// Carry is the method of the enforcer, not that of the cloud.
func (w *town) Carry(ctx context.Context, r reservation.Reservation, event reservation.EventType) error {
	return w.Enforcer.Carry(ctx, r, event)
}

func (w *town) Now() span.Instant {
	w.guard.Lock()
	defer w.guard.Unlock()
	if !w.bubble.IsZero() {
		return w.now.Add(int64(time.Since(w.bubble) / time.Second))
	}
	return w.now
}

func (w *town) pass(seconds int64) {
	w.guard.Lock()
	defer w.guard.Unlock()
	w.now = w.now.Add(seconds)
}

func (w *town) wait(ctx context.Context, d time.Duration) error {
	if w.bubble.IsZero() {
		w.pass(int64(d / time.Second))
	} else {
		time.Sleep(d)
	}
	if w.waited != nil {
		w.waited()
	}
	return ctx.Err()
}

func (w *town) snapshot() *inventory.Snapshot {
	var hosts []inventory.Host
	for _, h := range w.inventory().Hosts() {
		host := *h
		if w.gone[host.Name] {
			continue
		}
		if change := w.ails[host.Name]; change != nil {
			change(&host)
		}
		hosts = append(hosts, host)
	}
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		panic(err)
	}
	return s
}

// Live, Reservation and Recall stand for the booking service and its records.
func (w *town) Live(during span.Span) (list []reservation.Reservation) {
	w.guard.Lock()
	defer w.guard.Unlock()
	for id := range w.live {
		if r := w.known[id]; r.Span.Overlaps(during) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b reservation.Reservation) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

func (w *town) Reservation(id string) (reservation.Reservation, bool) {
	w.guard.Lock()
	defer w.guard.Unlock()
	return w.known[id], w.live[id]
}

func (w *town) Recall(_ context.Context, q booking.Recall) (got booking.Recalled, _ error) {
	w.guard.Lock()
	defer w.guard.Unlock()
	for _, id := range q.IDs {
		if r, ok := w.known[id]; ok {
			got.Reservations = append(got.Reservations, r)
		} else {
			got.Gone = append(got.Gone, id)
		}
	}
	return got, nil
}

func id(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// book enters a reservation of whole hosts for 1,000 s from noon + start on. Reservation n
// belongs to project pn.
func (w *town) book(n int, start int64, hosts ...string) reservation.Reservation {
	r := reservation.Reservation{
		ID: id(n), ProjectID: fmt.Sprintf("p%d", n), Status: reservation.Pending, Span: span.New(noon.Add(start), 1000),
		Terms: reservation.Terms{Kind: reservation.Hosts, OnEnd: reservation.OnEndDelete, Quantity: len(hosts)},
	}
	for _, host := range hosts {
		r.Claims = append(r.Claims, reservation.Claim{Host: host, Span: r.Span})
	}
	w.set(r)
	return r
}

// maintain is book for maintenance.
func (w *town) maintain(n int, start int64, hosts ...string) reservation.Reservation {
	r := w.book(n, start, hosts...)
	r.Maintenance = true
	w.set(r)
	return r
}

// bookInstances is book for one instance on each host.
func (w *town) bookInstances(n int, start int64, hosts ...string) reservation.Reservation {
	r := w.book(n, start, hosts...)
	r.Kind, r.Resources = reservation.Instances, resource.Vector{VCPUs: 1, MemoryMB: 512}
	r.Claims = slices.Clone(r.Claims)
	for i := range r.Claims {
		r.Claims[i].Slices = 1
	}
	w.set(r)
	return r
}

// bookKind books hosts, or instances on them.
func (w *town) bookKind(kind reservation.Kind, n int, start int64, hosts ...string) reservation.Reservation {
	if kind == reservation.Instances {
		return w.bookInstances(n, start, hosts...)
	}
	return w.book(n, start, hosts...)
}

func (w *town) set(r reservation.Reservation) {
	w.guard.Lock()
	defer w.guard.Unlock()
	w.known[r.ID], w.live[r.ID] = r, r.Status.Live()
	if !w.live[r.ID] {
		delete(w.live, r.ID)
	}
}

// begin carries an event out once, as the booking service does, and returns its error.
func (w *town) begin(n int, event reservation.EventType) error {
	r, _ := w.Reservation(id(n))
	during, after := reservation.Starting, reservation.Active
	if event == reservation.EndEvent {
		during, after = reservation.Ending, reservation.Ended
	}
	r.Status, r.Updated = during, w.Now()
	w.set(r)
	err := w.Carry(w.ctx(), r, event)
	if err == nil {
		r, _ = w.Reservation(r.ID)
		r.Status = after
		w.set(r)
	}
	return err
}

// running returns a town with a reservation that started at noon on the hosts. It has one
// instance on each host, named "own-" and the host.
func running(t *testing.T, onEnd reservation.OnEnd, hosts ...string) *town {
	t.Helper()
	w := newTown(t, "a", "b", "c", "d")
	w.start(1, onEnd, hosts...)
	return w
}

func (w *town) start(n int, onEnd reservation.OnEnd, hosts ...string) {
	w.t.Helper()
	r := w.book(n, 0, hosts...)
	r.OnEnd = onEnd
	w.set(r)
	if err := w.begin(n, reservation.StartEvent); err != nil {
		w.t.Fatalf("start reservation %d: %v", n, err)
	}
	for _, host := range hosts {
		w.putOwn(n, "own-"+host, host)
	}
}

// putOwn makes an instance of the reservation run on the host.
func (w *town) putOwn(n int, instance, host string) {
	i := inventory.Instance{ID: instance, ProjectID: fmt.Sprintf("p%d", n), Host: host, Status: "ACTIVE"}
	if w.hinted {
		i.Reservation = id(n)
	} else {
		i.Flavor.ExtraSpecs = map[string]string{inventory.ReservationMark: id(n)}
	}
	w.put(i)
}

// putStranger makes an instance of no reservation run on the host.
func (w *town) putStranger(instance, host string, change func(*inventory.Instance)) {
	i := inventory.Instance{ID: instance, ProjectID: "tenant-9", Host: host, Status: "ACTIVE"}
	if change != nil {
		change(&i)
	}
	w.put(i)
}

func preemptible(i *inventory.Instance) { i.Preemptible = true }

// admitted reports whether the reservation's project may use its flavor and the flavor is open.
func (w *town) admitted(n int) bool {
	w.modelCloud.mu.Lock()
	defer w.modelCloud.mu.Unlock()
	_, shut := w.flavors[id(n)].ExtraSpecs[closed]
	return w.access[id(n)][fmt.Sprintf("p%d", n)] && !shut
}

// guest returns an instance, and false if it is gone.
func (w *town) guest(id string) (inventory.Instance, bool) {
	w.modelCloud.mu.Lock()
	defer w.modelCloud.mu.Unlock()
	g, ok := w.guests[id]
	if !ok {
		return inventory.Instance{}, false
	}
	return g.Instance, true
}

func (w *town) given() []string {
	w.modelCloud.mu.Lock()
	defer w.modelCloud.mu.Unlock()
	return slices.Clone(w.orders)
}

// traces returns what the cloud has for the reservation.
func (w *town) traces(n int) (list []string) {
	l, err := w.modelCloud.Layout(context.Background())
	if err != nil {
		w.t.Fatalf("look: %v", err)
	}
	for name := range l.Aggregates {
		if strings.HasSuffix(name, id(n)) {
			list = append(list, "aggregate "+name)
		}
	}
	for flavor, f := range l.Flavors {
		if f.ExtraSpecs[inventory.ReservationMark] == id(n) {
			list = append(list, "flavor "+flavor)
		}
	}
	for _, name := range slices.Concat(l.TraitNames, l.ClassNames) {
		if name == fence.OwnName(id(n)) {
			list = append(list, name)
		}
	}
	return list
}

func mustFail(t *testing.T, err error, kind fault.Kind, words ...string) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Fatalf("error %v, want a fault of kind %s", err, kind)
	}
	for _, word := range words {
		if sentence := fault.Of(err).Message; !strings.Contains(sentence, word) {
			t.Errorf("the owner reads %q, want a sentence with %q", sentence, word)
		}
	}
}
