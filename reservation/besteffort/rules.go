package besteffort

import (
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Backfillings are all kinds of backfilling.
var Backfillings = []Backfilling{None, Aggressive, Intermediate, Conservative}

// Check refuses rules that make no sense, with a fault.Field that names the option.
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

// promises is how many of those that wait are promised a start.
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

// suspension is how many seconds it takes to suspend n virtual machines at once.
func (o Overheads) suspension(memoryMB int64, n int) int64 {
	return plus(seconds(memoryMB, o.SuspendRate), o.operations(n))
}

// resumption is how many seconds it takes to resume n virtual machines at once.
func (o Overheads) resumption(memoryMB int64, n int) int64 {
	return plus(seconds(memoryMB, o.ResumeRate), o.operations(n))
}

// stop is how many seconds it takes to shut n virtual machines down at once.
func (o Overheads) stop(n int) int64 { return plus(o.Shutdown, o.operations(n)) }

// move is how many seconds it takes to move the memory of a virtual machine. Those that are
// moved at once go between different nodes.
func (o Overheads) move(memoryMB int64) int64 { return seconds(memoryMB, o.MoveRate) }

func (o Overheads) operations(n int) int64 {
	if o.Operation > 0 && int64(n) > math.MaxInt64/o.Operation {
		return math.MaxInt64
	}
	return o.Operation * int64(n)
}

// seconds is how long so much takes, a second that is begun being a whole one.
func seconds(megabytes int64, rate float64) int64 {
	if rate <= 0 {
		return 0
	}
	return whole(float64(megabytes) / rate)
}

// whole rounds up, to what an int64 has.
func whole(f float64) int64 {
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(math.Ceil(f))
}

// plus is a + b of amounts that are not negative, at most what an int64 has.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
