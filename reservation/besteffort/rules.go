// SPDX-License-Identifier: Apache-2.0

package besteffort

import (
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Backfilling is how many of the waiting units are promised a start in the future, which those
// behind them may not delay (Haizea, scheduling backfilling).
type Backfilling string

// The kinds of backfilling.
const (
	None         Backfilling = "none"         // no unit overtakes another
	Aggressive   Backfilling = "aggressive"   // one is promised a start: EASY
	Intermediate Backfilling = "intermediate" // Rules.Promises are promised a start
	Conservative Backfilling = "conservative" // all are promised a start
)

// Backfillings are all kinds of backfilling.
var Backfillings = []Backfilling{None, Aggressive, Intermediate, Conservative}

// Rules configure the plans.
type Rules struct {
	// Suspend lets a VM run up to a reservation, be suspended and be resumed after it; otherwise
	// it starts only where it ends before. With Backfilling None and without Suspend a node is
	// drained before a reservation.
	Suspend     bool
	Backfilling Backfilling
	Promises    int // of Intermediate
	// Migrate lets a suspended VM resume on another node.
	Migrate bool
	// Worthwhile is the least run time before a reservation for which a VM is started, as a
	// multiple of the time that its suspension and resumption take; 0 means any time.
	Worthwhile float64
	Overheads  Overheads
}

// Overheads are how long operations on VMs take, in seconds, and transfer rates in MB a second. 0
// means that the operation or transfer takes no time.
type Overheads struct {
	Boot, Shutdown int64
	// Operation is what each suspension, resumption and shutdown takes in addition, for each VM
	// that is handled at once (Haizea, enactment-overhead).
	Operation               int64
	SuspendRate, ResumeRate float64 // MB of memory a second
	MoveRate                float64 // MB a second
}

// Check refuses inconsistent rules with a fault.Field that names the option.
func (r Rules) Check() error {
	if !slices.Contains(Backfillings, r.Backfilling) {
		return fault.Field("backfilling", "there is no backfilling %q; the kinds are none, aggressive, intermediate and conservative", r.Backfilling)
	}
	if r.Backfilling == Intermediate && r.Promises < 1 {
		return fault.Field("backfilling_reservations", "%d are promised a start; intermediate backfilling takes 1 or more", r.Promises)
	}
	for _, amount := range []struct {
		field string
		value float64
	}{
		{"scheduling_threshold_factor", r.Worthwhile},
		{"boot_time", float64(r.Overheads.Boot)},
		{"shutdown_time", float64(r.Overheads.Shutdown)},
		{"enactment_overhead", float64(r.Overheads.Operation)},
		{"suspend_rate", r.Overheads.SuspendRate},
		{"resume_rate", r.Overheads.ResumeRate},
		{"migration_rate", r.Overheads.MoveRate},
	} {
		if !(amount.value >= 0) || math.IsInf(amount.value, 1) {
			return fault.Field(amount.field, "%v is not 0 or more", amount.value)
		}
	}
	return nil
}

// promises returns how many of the units that wait are promised a start.
func (r Rules) promises() int {
	switch r.Backfilling {
	case Aggressive:
		return 1
	case Intermediate:
		return r.Promises
	case Conservative:
		return math.MaxInt
	default:
		return 0
	}
}

// suspension returns how many seconds the suspension of n VMs at once takes.
func (o Overheads) suspension(memoryMB int64, n int) int64 {
	return plus(seconds(memoryMB, o.SuspendRate), o.operations(n))
}

// resumption returns how many seconds the resumption of n VMs at once takes.
func (o Overheads) resumption(memoryMB int64, n int) int64 {
	return plus(seconds(memoryMB, o.ResumeRate), o.operations(n))
}

// stop returns how many seconds the shutdown of n VMs at once takes.
func (o Overheads) stop(n int) int64 { return plus(o.Shutdown, o.operations(n)) }

// move returns how many seconds the move of a VM's memory takes. VMs that move at once use
// different nodes.
func (o Overheads) move(memoryMB int64) int64 { return seconds(memoryMB, o.MoveRate) }

func (o Overheads) operations(n int) int64 {
	if o.Operation > 0 && int64(n) > math.MaxInt64/o.Operation {
		return math.MaxInt64
	}
	return o.Operation * int64(n)
}

// seconds returns how long a transfer takes, rounded up.
func seconds(megabytes int64, rate float64) int64 {
	if rate <= 0 {
		return 0
	}
	return whole(float64(megabytes) / rate)
}

// whole rounds up to an int64, and caps at its maximum.
func whole(f float64) int64 {
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(math.Ceil(f))
}

// plus returns a + b of non-negative amounts, capped at the maximum of an int64.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
