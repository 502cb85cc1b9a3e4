package energy

import (
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Shown gives what the inventory shows of a host's power because of the record. boot is the
// boot time of a host of which neither the record nor its source has one, and margin what
// is counted with beside the boot; in seconds.
func (r *Record) Shown(now span.Instant, boot, margin int64) inventory.PowerSetting {
	set := inventory.PowerSetting{BootSeconds: r.BootSeconds(0), BootOtherwise: boot}
	switch r.Phase {
	case Awake:
	case Waking:
		if r.Attempt > 0 {
			set.Power, set.Problem = inventory.PowerFailed, "it has failed to wake up, and is tried again"
			break
		}
		set.Power, set.WakeDelay = inventory.PowerWaking, margin
	case Failed:
		set.Power, set.Problem = inventory.PowerFailed, r.Reason
	default:
		set.Power, set.WakeDelay = inventory.PowerSleeping, margin
		if r.Phase == Stopping && r.Order != nil {
			set.WakeDelay += r.Order.Patience // it has to stop first
		}
		if h := r.Hold; h.Holds(now) && (h.Action == HoldOff || h.Action == HoldStandby) {
			// Nobody knows when it will be given back, if no end was set.
			if h.Until == 0 {
				set.Power, set.Problem = inventory.PowerFailed, "it is held off by hand"+h.because()
			} else {
				set.WakeDelay += int64(h.Until - now)
			}
		}
	}
	return set
}

// BootSeconds gives the 95th percentile of the host's boots by nearest rank, so of fewer
// than 20 the longest; or otherwise where it has none.
func (r *Record) BootSeconds(otherwise int64) int64 {
	if len(r.Boots) == 0 {
		return otherwise
	}
	var room [mostBoots]int64
	sorted := append(room[:0], r.Boots...)
	slices.Sort(sorted)
	return sorted[(len(sorted)*95+99)/100-1]
}
