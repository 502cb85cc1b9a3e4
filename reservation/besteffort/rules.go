package besteffort

import (
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Backfillings are all kinds of backfilling.
var Backfillings = []Backfilling{None, Aggressive, Intermediate, Conservative}

// Check refuses inconsistent rules with a fault.Field that names the option.
func (r Rules) Check() error {
	if !slices.Contains(Backfillings, r.Backfilling) {
		return fault.Field("backfilling", "%q is none of none, aggressive, intermediate and conservative", r.Backfilling)
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
