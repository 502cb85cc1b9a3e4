// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Site is a cloud whose hosts are switched off and on. Only the goroutine of its timeline may use
// it.
type Site struct {
	options  Options
	timeline *sim.Timeline
	bookings *sim.Booking
	list     []inventory.Host // by name, without instances
	hosts    *inventory.SnapshotCache
	fleet    fleet
	ledger   ledger
	step     func(ctx context.Context) error // the controller's; nil if no host is ever switched
	ctx      context.Context                 // of the steps
	promises promises

	stays map[string]*stay // reservations that have begun and are not over
	stale bool             // booking and the controller have not seen the latest state of the hosts
	// powers are what the inventory shows of the power of each host.
	powers map[string]inventory.PowerSetting

	steps stepping

	begun   span.Instant
	cores   Cores
	changed bool // cores have changed since the last call of Watch
	totals  Totals
}

// admitting is the property of hosts that allows the controller to switch them off, as in the
// service.
const admitting = "energy_managed"

// New returns a site on a timeline. It works for as long as the timeline runs and ctx lasts.
func New(ctx context.Context, t *sim.Timeline, o Options) (*Site, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	s := &Site{options: o, timeline: t, begun: t.Now(), stays: map[string]*stay{}, powers: map[string]inventory.PowerSetting{}}
	s.totals.Since = t.Now()
	s.ledger.records, s.ledger.copy, s.ledger.now = map[string]*energy.Record{}, map[string]energy.Record{}, t.Now
	s.equip()
	if o.Power != nil {
		s.showPower(slices.Collect(maps.Keys(s.fleet.places)))
	}
	var err error
	s.hosts, err = inventory.OpenSnapshotCache(ctx, (*source)(s), inventory.SnapshotCacheOptions{
		Hosts: &s.ledger, Properties: &s.ledger, Powers: (*source)(s), Now: t.Now, Log: silent,
	})
	if err != nil {
		return nil, fmt.Errorf("read the hosts: %w", err)
	}
	if s.bookings, err = sim.NewBooking(ctx, t, s.hosts.Snapshot(), o.Booking); err != nil {
		return nil, fmt.Errorf("open the booking service: %w", err)
	}
	s.bookings.Happened = s.happened
	s.promises.bookings = s.bookings.Service
	if o.Power != nil {
		s.step, s.ctx = controller.New(s.controllerOptions()).Job().Step, ctx
		s.steps = stepping{first: t.Now(), last: t.Now() - 1}
		s.expectStep(t.Now())
	}
	s.changed = true
	s.show()
	return s, nil
}

var silent = slog.New(slog.DiscardHandler)

// equip adds a machine for each host.
func (s *Site) equip() {
	n := len(s.options.Hosts)
	s.fleet = fleet{places: make(map[string]int, n), access: make(map[string]energy.Access, n), services: make(map[string]controller.Service, n), now: s.timeline.Now}
	s.list = admitted(s.options.Hosts)
	for _, h := range s.list {
		s.fleet.places[h.Name] = len(s.fleet.all)
		m := &machine{name: h.Name, cores: h.Capacity.VCPUs, since: s.begun}
		s.fleet.all = append(s.fleet.all, m)
		s.fleet.changes(m)
		s.fleet.access[h.Name] = energy.Access{
			Host: h.Name, Agent: "simulated", Driver: "simulated", States: []energy.State{energy.On, energy.Off},
		}
		s.cores[idle] += h.Capacity.VCPUs
	}
}

// admitted returns the hosts, keyed by name, each with the property that allows switching it off,
// unless the host has that property already.
func admitted(hosts []inventory.Host) []inventory.Host {
	list := slices.Clone(hosts)
	slices.SortFunc(list, func(a, b inventory.Host) int { return cmp.Compare(a.Name, b.Name) })
	for i := range list {
		h := &list[i]
		if _, said := h.Properties[admitting]; !said {
			h.Properties = maps.Clone(h.Properties)
			if h.Properties == nil {
				h.Properties = map[string]inventory.Value{}
			}
			h.Properties[admitting] = inventory.BoolValue(true)
		}
	}
	return list
}

func (s *Site) controllerOptions() controller.Options {
	p := s.options.Power
	return controller.Options{
		Records: &s.ledger, Settings: &s.ledger, History: &s.ledger, Notices: &s.ledger, Leases: &s.ledger,
		Agents: &s.fleet, Cloud: &s.fleet, Vacancy: &s.fleet, Promises: &s.promises, Hosts: s.hosts,
		Rules: p.Rules, Switching: p.Switching, Admission: energy.Admission{Property: admitting}, Mode: energy.ModeAuto,
		BootTime:     p.BootTime,
		Efficiency:   func(string) energy.Efficiency { return energy.Efficiency{Draw: s.options.Machines.Draw} },
		Forecaster:   func() (energy.Forecaster, error) { return energy.NewForecaster(p.Forecaster, energy.Window(p.Window)) },
		Touched:      s.fleet.Touched,
		MeasureEvery: p.MeasureEvery, PlanEvery: p.PlanEvery, Replica: "simulated",
		Now: s.timeline.Now, NewID: s.ledger.newID, Log: silent,
	}
}

// Submit books a reservation, schedules its start and its end, and counts it. It returns the error
// of booking.Service.
func (s *Site) Submit(ctx context.Context, by booking.Caller, req reservation.Request) (reservation.Reservation, error) {
	if err := s.refresh(ctx); err != nil {
		return reservation.Reservation{}, err
	}
	r, err := s.bookings.Book(ctx, by, req)
	if refusal := (*reservation.Refusal)(nil); errors.As(err, &refusal) {
		s.totals.Refused++
	}
	if err != nil {
		return r, err
	}
	s.totals.Booked++
	s.expectWake()
	return r, nil
}

// End ends a reservation early, or cancels it before its start.
func (s *Site) End(ctx context.Context, id string) error {
	r, err := s.bookings.Cancel(ctx, booking.Caller{Admin: true}, id)
	if err != nil {
		return err
	}
	return s.leave(&r)
}

// Reservation returns a reservation that is not over; false means that none has that id.
func (s *Site) Reservation(id string) (reservation.Reservation, bool) {
	return s.bookings.Reservation(id)
}

// refresh reads the inventory again if something has changed.
func (s *Site) refresh(ctx context.Context) error {
	if !s.stale {
		return nil
	}
	s.stale = false
	if err := s.hosts.Refresh(ctx); err != nil {
		return fmt.Errorf("read the hosts: %w", err)
	}
	s.bookings.Observe(s.hosts.Snapshot())
	return nil
}

// source presents the site as the sources of the inventory.
type source Site

// Hosts implements inventory.Source.
func (c *source) Hosts(context.Context) ([]inventory.Host, error) {
	hosts := slices.Clone(c.list)
	for i := range hosts {
		if h := &hosts[i]; c.fleet.all[i].state == busy {
			h.InstanceCount, h.Used = 1, h.Capacity
		}
	}
	return hosts, nil
}

// PowerSettings implements inventory.PowerSettings. It overlays the controller's records on each
// reading of the hosts, as the service does.
func (c *source) PowerSettings(context.Context, []string) (map[string]inventory.PowerSetting, error) {
	return c.powers, nil
}

// showPower makes the inventory show the power of hosts as their records have it.
func (s *Site) showPower(hosts []string) {
	p := s.options.Power
	for _, host := range hosts {
		var r energy.Record
		if stored, known := s.ledger.records[host]; known {
			r = *stored
		}
		shown := r.Shown(s.timeline.Now(), p.BootTime, p.Rules.BootMargin)
		if shown != s.powers[host] {
			s.powers[host], s.stale = shown, true
		}
	}
}
