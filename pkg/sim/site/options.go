// SPDX-License-Identifier: Apache-2.0

// Package site simulates a cloud whose hosts are switched off and on, on a sim.Timeline. It uses
// the service's own booking.Service (through sim.Booking), its inventory including the power of the
// hosts, and its energy controller (pkg/energy/controller), which steps as simulated time passes.
// The controller's ports are implemented in memory: records, machines that need time to stop and to
// boot, and a Nova that shows which of them are up. The site keeps exact accounts of hosts and
// reservations.
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
	// Hosts are all hosts. At first they are on and empty.
	Hosts    []inventory.Host
	Booking  sim.BookingOptions
	Machines Machines
	// Power is how hosts are switched; nil means that all of them stay on.
	Power *Power
	// Seed determines the boot times.
	Seed uint64

	// Began receives each reservation when it has all its hosts, or when it has ended without ever
	// having had them all. nil means no call.
	Began func(Beginning) error
	// Happened receives each start and end that was carried out; Watch receives the cores in each
	// state whenever they change. nil means no call.
	Happened func(booking.Happening) error
	Watch    func(at span.Instant, cores Cores)
}

// Machines describe how the machines behave. Times are seconds.
type Machines struct {
	Shutdown int64 // from the order until the machine is off
	Boot     int64 // from the order until the host accepts instances: the median
	// Spread is the standard deviation of the logarithm of boot times, which are log-normal; 0
	// means that all boots take equally long.
	Spread float64
	// Crowding is the share of Boot that is added to the duration of a boot for each other boot
	// that is under way when it begins.
	Crowding float64
	// Draw is the power of each machine in its states. BootJoules are spread evenly over Shutdown
	// and Boot, so that a boot that takes longer uses more.
	Draw energy.Draw
}

// Power is how hosts are switched, like the section [energy] of the configuration. Times are
// seconds.
type Power struct {
	Rules     energy.Rules
	Switching energy.Switching
	// Forecaster is one of energy.Forecasters; Window is how many seconds of the past
	// moving_maximum considers.
	Forecaster string
	Window     int64
	BootTime   int64 // of a host without measured boots
	// StepEvery is the interval in which the controller advances hosts that are being switched,
	// MeasureEvery the interval of measurements, PlanEvery the interval of plans. StepEvery divides
	// MeasureEvery.
	StepEvery, MeasureEvery, PlanEvery int64
}

// Paper returns the power of the evaluation in paper 004: its rules, a measurement each minute, a
// plan every five minutes, and the forecast that the present use continues (erratum E004-7). For
// settings that the paper leaves open, it has the service's defaults. boot is the assumed boot
// time, in seconds, of a host whose boots were not measured.
func Paper(boot int64) Power {
	return Power{
		Rules:      energy.Paper(),
		Switching:  energy.Switching{Settle: 60, OffPatience: 300, BootTimeout: max(1200, 4*boot), Retries: 2, Backoff: 30, Probe: 3600},
		Forecaster: "last_value", Window: 3600, BootTime: boot,
		StepEvery: 5, MeasureEvery: 60, PlanEvery: 300,
	}
}

// Beginning describes how a reservation began.
type Beginning struct {
	Reservation reservation.Reservation
	Asked       span.Instant // when it was booked
	Promised    span.Instant // its start
	// At is when the last host of the reservation was up; its end, if it never had all its hosts.
	At span.Instant
}

// Late returns by how many seconds the reservation missed its promised start.
func (b *Beginning) Late() int64 { return int64(b.At - b.Promised) }

// Wait returns how many seconds the request waited for hosts to boot, from its booking if it had to
// begin at once, otherwise from its start.
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
