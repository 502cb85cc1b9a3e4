// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"context"
	"errors"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/sim/site"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Strategy is what happens to idle hosts.
type Strategy string

// The strategies of the paper.
const (
	AlwaysOn     Strategy = "always on"                    // nothing happens to them
	SwitchOff    Strategy = "switch-off"                   // they are switched off; each request arrives at its start
	Reservations Strategy = "switch-off with reservations" // and a share of the requests is known ahead
)

// Strategies lists all strategies.
var Strategies = []Strategy{AlwaysOn, SwitchOff, Reservations}

// outcome is the result of one run.
type outcome struct {
	site.Totals
	ahead int // requests that were known ahead, with enough time to boot
	late  int // requests among these that began late
	week  []moment
}

// moment is how many hosts are in each state from a second on, until the next moment.
type moment struct {
	at             int64
	on, inUse, off int64
}

// try simulates the demand of a run with a strategy and a setting.
func (o *Options) try(ctx context.Context, d *demand, strategy Strategy, s Setting, run int) (outcome, error) {
	var out outcome
	options := o.siteOptions(s)
	options.Hosts, options.Seed = sim.Hosts(d.hosts), o.Seed+uint64(run)
	if strategy == AlwaysOn {
		options.Power = nil
	}
	enough := max(s.Horizon, options.Machines.Boot) + 60
	options.Began = func(b site.Beginning) error {
		if !b.Reservation.DelayedByBoot && b.Promised >= b.Asked.Add(enough) {
			out.ahead++
			if b.Late() > 0 {
				out.late++
			}
		}
		return nil
	}
	if run == 0 {
		options.Watch = func(at span.Instant, c site.Cores) {
			out.week = append(out.week, moment{int64(at - sim.Second(0)), c.On(), c.InUse(), c.Off()})
		}
	}
	t := sim.NewTimeline(sim.Second(0))
	cloud, err := site.New(ctx, t, options)
	if err != nil {
		return out, err
	}
	share := 0.0
	if strategy == Reservations {
		share = s.Share
	}
	if err := o.submit(ctx, t, cloud, d, share, run); err != nil {
		return out, err
	}
	if err := t.Run(ctx, sim.Second(d.seconds)); err != nil {
		return out, err
	}
	out.Totals = cloud.Finish()
	return out, nil
}

// submit schedules the requests. A request that is known ahead is a reservation with a start; any
// other starts as soon as possible after it arrives.
func (o *Options) submit(ctx context.Context, t *sim.Timeline, cloud *site.Site, d *demand, share float64, run int) error {
	asked, err := o.ahead(d, share, run)
	if err != nil {
		return err
	}
	for i, r := range d.requests {
		req := reservation.Request{Terms: reservation.Terms{Quantity: r.hosts}, Duration: r.duration}
		if asked[i] < r.start {
			req.Start = sim.Second(r.start)
		}
		t.At(sim.Second(asked[i]), sim.Arriving, func() error {
			_, err := cloud.Submit(ctx, booking.Caller{ProjectID: "users"}, req)
			if refusal := (*reservation.Refusal)(nil); errors.As(err, &refusal) {
				return nil // the site counts it
			}
			return err
		})
	}
	return nil
}
