// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

const (
	base = span.Instant(2_000_000_000)
	poll = 5
	mega = 1_000_000
)

var errLost = errors.New("the lease was lost")

// ledger keeps the rows in memory, guarded by the epoch as in the database.
type ledger struct {
	stored controller.Stored
	epoch  int64
	holder string
	err    error // the next call fails with it
}

func (l *ledger) StagedImages(context.Context, span.Instant) (controller.Stored, error) {
	s := l.stored
	s.Images, s.Transfers, s.Cached = slices.Clone(s.Images), slices.Clone(s.Transfers), slices.Clone(s.Cached)
	return s, l.err
}

func (l *ledger) ChangeStagedImages(_ context.Context, lease job.Lease, c controller.Change) error {
	if lease != (job.Lease{}) && lease.Epoch != l.epoch {
		return errLost
	}
	if l.err == nil {
		l.stored.Apply(c)
	}
	return l.err
}

// lessee is one replica's view of the lease.
type lessee struct {
	*ledger
	name string
}

func (l lessee) Take(_ context.Context, name string, _ time.Duration) (job.Lease, bool, error) {
	if l.holder == "" {
		l.holder = l.name
		l.epoch++
	}
	return job.Lease{Name: name, Epoch: l.epoch}, l.holder == l.name, nil
}

// asked is a call to the cloud.
type asked struct {
	call, image string
	hosts       []string
	at          span.Instant
}

// word is a notification of the cloud and its time.
type word struct {
	controller.Word
	at span.Instant
}

// scene is a cloud with reservations, and replicas of the controller on a clock that the test
// sets.
type scene struct {
	t        rapid.TB
	now      span.Instant
	ledger   *ledger
	rules    controller.Rules
	hosts    []inventory.Host
	live     []reservation.Reservation
	replicas []*controller.Controller
	images   map[string]int64 // in Glance
	glance   error

	has     map[string]bool // "image/host": the host has the image
	calls   []asked
	pending []word
	speed   float64 // bytes per second
	busy    span.Instant
	broken  func(host string) bool
	silent  func() bool               // reports whether a notification is lost
	twice   func() bool               // reports whether it is repeated
	upon    func(asked) (bool, error) // replaces the effect of a call
	before  func(controller.Transfer) // checks each row when a call is made
	told    map[string][]reservation.Event
	ids     int
}

func newScene(t rapid.TB, adjust ...func(*scene)) *scene {
	s := &scene{
		t: t, now: base, ledger: &ledger{}, images: map[string]int64{}, has: map[string]bool{}, told: map[string][]reservation.Event{},
		speed: 100 * mega,
		rules: controller.Rules{
			Strategy: staging.EDF, Rate: 100 * mega, Margin: 60, Lifetime: 86_400, Factor: 3, Retries: 3, RetryDelay: 30, Heard: true, Poll: poll * time.Second,
		},
		broken: func(string) bool { return false }, silent: func() bool { return false }, twice: func() bool { return false },
	}
	for _, f := range adjust {
		f(s)
	}
	for len(s.replicas) < 2 {
		s.replicas = append(s.replicas, s.replica(fmt.Sprint("r", len(s.replicas))))
	}
	return s
}

func (s *scene) replica(name string) *controller.Controller {
	return controller.New(s.options(name))
}

func (s *scene) options(name string) controller.Options {
	return controller.Options{
		Records: s.ledger, Cloud: s, Glance: s, Promises: s, Demands: planning.Demands, Hosts: s, Leases: lessee{s.ledger, name}, Rules: s.rules,
		Now:   func() span.Instant { return s.now },
		NewID: func() string { s.ids++; return fmt.Sprint("id-", s.ids) },
		Log:   slog.New(slog.DiscardHandler),
	}
}

// crash restarts a replica. The lease goes to the first replica that takes it.
func (s *scene) crash(i int) {
	s.replicas[i] = s.replica(fmt.Sprintf("r%d-%d", i, s.ids))
	s.ids++
	s.ledger.holder = ""
}

// reserve adds a reservation of hosts for an hour; it starts that many seconds after base.
func (s *scene) reserve(id, image string, start int64, hosts ...string) *reservation.Reservation {
	r := reservation.Reservation{
		ID: id, Status: reservation.Pending, Span: span.New(base.Add(start), 3600), Created: s.now,
		Terms: reservation.Terms{Image: image, Kind: reservation.Hosts, Quantity: len(hosts)},
	}
	for _, h := range hosts {
		r.Claims = append(r.Claims, reservation.Claim{Host: h, Span: r.Span})
		if !slices.ContainsFunc(s.hosts, func(o inventory.Host) bool { return o.Name == h }) {
			s.hosts = append(s.hosts, inventory.Host{Name: h})
		}
	}
	s.live = append(s.live, r)
	return &s.live[len(s.live)-1]
}

// step advances the clock, sends the notifications that are due, and runs a step of every replica.
func (s *scene) step(seconds int64) {
	s.now = s.now.Add(seconds)
	slices.SortStableFunc(s.pending, func(a, b word) int { return int(a.at - b.at) })
	for len(s.pending) > 0 && s.pending[0].at <= s.now {
		w := s.pending[0]
		s.pending = s.pending[1:]
		for _, image := range w.Cached {
			s.has[image+"/"+w.Host] = true
		}
		times := 1
		if s.silent() {
			times = 0
		} else if s.twice() {
			times = 2
		}
		for range times {
			for _, r := range s.replicas {
				r.Hear(w.Word)
			}
		}
	}
	for i := range s.live {
		if r := &s.live[i]; r.Status == reservation.Pending && r.Span.Start <= s.now {
			r.Status = reservation.Active
		}
	}
	for _, r := range s.replicas {
		_ = r.Step(context.Background()) // a later step repeats what fails
	}
}

// run advances the clock to an instant, in seconds after base.
func (s *scene) run(until int64) {
	if s.now == base {
		s.step(0)
	}
	for s.now < base.Add(until) {
		s.step(min(poll, int64(base.Add(until)-s.now)))
	}
}

// Cache implements controller.ImageCache: the image arrives at one host after the other.
func (s *scene) Cache(_ context.Context, call, image string, hosts []string) (bool, error) {
	a := asked{call, image, slices.Clone(hosts), s.now}
	s.calls = append(s.calls, a)
	if s.before != nil {
		for _, t := range s.ledger.stored.Transfers {
			s.before(t)
		}
	}
	if s.upon != nil {
		if done, err := s.upon(a); !done {
			return err == nil || !strings.Contains(err.Error(), "never"), err
		}
	}
	s.carryOut(call, image, hosts)
	return true, nil
}

// carryOut transfers an image to hosts, after the earlier transfers of the same channel.
func (s *scene) carryOut(call, image string, hosts []string) {
	at := max(s.now, s.busy)
	for _, h := range hosts {
		w := word{controller.Word{Call: call, Host: h}, 0}
		if s.broken(h) {
			w.Failed = []string{image}
			at++
		} else {
			w.Cached = []string{image}
			if !s.has[image+"/"+h] {
				at = at.Add(int64(float64(s.images[image])/s.speed) + 1)
			}
		}
		w.at = at
		s.pending = append(s.pending, w)
	}
	s.busy = at
}

// Clear implements controller.ImageCache.
func (s *scene) Clear(context.Context) error { return nil }

// Find implements controller.Glance.
func (s *scene) Find(_ context.Context, text, _ string) (controller.Image, error) {
	return controller.Image{ID: text, Name: text, Bytes: s.images[text]}, s.glance
}

// IsID implements controller.Glance.
func (s *scene) IsID(text string) bool { return !strings.Contains(text, " ") }

// Look implements controller.Glance.
func (s *scene) Look(_ context.Context, id string) (controller.Image, bool, error) {
	size, there := s.images[id]
	return controller.Image{ID: id, Name: id, Bytes: size}, !there, s.glance
}

// Live implements controller.Promises.
func (s *scene) Live(w span.Span) (list []reservation.Reservation) {
	for _, r := range s.live {
		if r.Span.Overlaps(w) {
			list = append(list, r)
		}
	}
	return list
}

// Remark implements controller.Promises.
func (s *scene) Remark(_ context.Context, id, sentence string) (bool, error) {
	for i := range s.live {
		if r := &s.live[i]; r.ID == id && r.Status == reservation.Pending {
			r.Events = append(slices.Clone(r.Events), reservation.Event{Type: reservation.ImageEvent, Time: s.now, State: reservation.EventDone, Done: s.now, Detail: sentence})
			return true, nil
		}
	}
	return false, nil
}

// remarks returns what the owner of a reservation was told.
func (s *scene) remarks(id string) (list []string) {
	for _, r := range s.live {
		if r.ID == id {
			for _, e := range r.Events {
				list = append(list, e.Detail)
			}
		}
	}
	return list
}

// Snapshot implements controller.Hosts.
func (s *scene) Snapshot() *inventory.Snapshot {
	snapshot, err := inventory.NewSnapshot(slices.Clone(s.hosts), nil, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return snapshot
}

// Untrusted implements controller.Hosts.
func (s *scene) Untrusted(span.Instant) string { return "" }

// states returns the state of a reservation's image, by host.
func (s *scene) states(id string) map[string]controller.State {
	s.t.Helper()
	states := map[string]controller.State{}
	for _, r := range s.live {
		if r.ID == id {
			for _, h := range s.replicas[0].Of(&r) {
				states[h.Host] = h.State
			}
		}
	}
	return states
}
