// Package site simulates a cloud whose hosts are switched off and on, on a sim.Timeline. It uses
// the booking service (sim.Booking), its inventory with the power of the hosts laid over it, and
// its energy controller (pkg/energy/controller), which steps as time passes. The controller's ports
// are implemented in memory: records, machines that need time to stop and to boot, and a Nova that
// knows which of them are up. The site keeps exact accounts of hosts and reservations.
package site

import (
	"math"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Options describe a Site.
type Options struct {
	// Hosts are all hosts. They are on and empty at first.
	Hosts    []inventory.Host
	Booking  sim.BookingOptions
	Machines Machines
	// Power is how hosts are switched; nil leaves all of them on.
	Power *Power
	// Seed determines the boot times.
	Seed uint64

	// Began, unless nil, receives each reservation that has all its hosts, or has ended without
	// having them all.
	Began func(Beginning) error
	// Happened receives each start and end that was carried out; Watch receives the cores in each
	// state whenever they change. Each may be nil.
	Happened func(booking.Happening) error
	Watch    func(at span.Instant, cores Cores)
}

// Machines describe how the machines behave. Times are seconds.
type Machines struct {
	Shutdown int64 // from the order until the machine is off
	Boot     int64 // from the order until the host accepts instances: the median
	// Spread is the standard deviation of the logarithm of boot times, which are log-normal; with 0
	// all boots take equally long.
	Spread float64
	// Crowding is the share of Boot that a boot takes longer for each other boot under way at its
	// start.
	Crowding float64
	// Draw is the power of each machine. While it stops or boots it takes BootJoules spread evenly
	// over Shutdown and Boot, so that a longer boot takes more.
	Draw energy.Draw
}

// Power is how hosts are switched, as in [energy] of the configuration. Times are seconds.
type Power struct {
	Rules     energy.Rules
	Switching energy.Switching
	// Forecaster is one of energy.Forecasters; Window is how far back moving_maximum looks.
	Forecaster string
	Window     int64
	BootTime   int64 // of a host without measured boots
	// StepEvery is how often the controller looks after hosts on their way, MeasureEvery how often
	// it measures, and PlanEvery how often it plans. The first divides the second.
	StepEvery, MeasureEvery, PlanEvery int64
}

// Paper returns the power of the evaluation in paper 004: its rules, a measurement each minute, a plan
// every five, and a forecast that present use continues (E004-7). The service's defaults fill in what
// the paper leaves open. boot is the assumed boot time, in seconds, of a host without measured boots.
func Paper(boot int64) Power {
	return Power{
		Rules:      energy.Paper(),
		Switching:  energy.Switching{Settle: 60, OffPatience: 300, BootTimeout: max(1200, 4*boot), Retries: 2, Backoff: 30, Probe: 3600},
		Forecaster: "last_value", Window: 3600, BootTime: boot,
		StepEvery: 5, MeasureEvery: 60, PlanEvery: 300,
	}
}

// Beginning is how a reservation began.
type Beginning struct {
	Reservation reservation.Reservation
	Asked       span.Instant // when it was booked
	Promised    span.Instant // its start
	// At is when its last host was up; for a reservation that never had all its hosts, its end.
	At span.Instant
}

// Late returns for how many seconds the promised start was missed.
func (b *Beginning) Late() int64 { return int64(b.At - b.Promised) }

// Wait returns for how many seconds the request waited for hosts to boot: since the booking if it
// had to begin at once, else since its start.
func (b *Beginning) Wait() int64 {
	if b.Reservation.DelayedByBoot {
		return int64(b.At - b.Asked)
	}
	return b.Late()
}

// Check returns a fault for an option outside its range.
func (o *Options) Check() error {
	if len(o.Hosts) == 0 {
		return fault.Field("hosts", "there must be one at least")
	}
	if err := o.Machines.check(); err != nil || o.Power == nil {
		return err
	}
	return o.Power.check()
}

// longest bounds times, in seconds, so that sums of them do not overflow.
const longest = 365 * 24 * 3600

func (m *Machines) check() error {
	switch {
	case m.Shutdown < 0 || m.Shutdown > longest:
		return fault.Field("shutdown", "must be from 0 s to a year")
	case m.Boot < 0 || m.Boot > longest:
		return fault.Field("boot", "must be from 0 s to a year")
	case !(m.Spread >= 0 && m.Spread <= 3):
		return fault.Field("boot_spread", "must be from 0 to 3")
	case !(m.Crowding >= 0 && m.Crowding <= 10):
		return fault.Field("boot_crowding", "must be from 0 to 10")
	}
	for _, draw := range []struct {
		name  string
		value float64
	}{{"idle_watts", m.Draw.Idle}, {"full_watts", m.Draw.Full}, {"off_watts", m.Draw.Off}, {"boot_joules", m.Draw.BootJoules}} {
		if !(draw.value >= 0) || math.IsInf(draw.value, 1) {
			return fault.Field(draw.name, "must be a number that is not negative")
		}
	}
	return nil
}

func (p *Power) check() error {
	switch {
	case p.Rules.Horizon < 0 || p.Rules.Horizon > longest:
		return fault.Field("horizon", "must be from 0 s to a year")
	case p.Rules.IdleNeeded < 1:
		return fault.Field("idle_intervals", "must be at least 1")
	case p.StepEvery < 1:
		return fault.Field("step_interval", "must be at least a second")
	case p.MeasureEvery < 1 || p.MeasureEvery%p.StepEvery != 0:
		return fault.Field("measure_interval", "must be a multiple of the step interval, %d s", p.StepEvery)
	case p.PlanEvery < 1:
		return fault.Field("plan_interval", "must be at least a second")
	case p.BootTime < 0 || p.BootTime > longest:
		return fault.Field("boot_time", "must be from 0 s to a year")
	}
	_, err := energy.NewForecaster(p.Forecaster, energy.Window(p.Window))
	return err
}
