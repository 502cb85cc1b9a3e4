// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Shown returns the power that the inventory shows of the host because of its record. boot is the
// boot time in seconds to use if neither the record nor the inventory has one; margin is added to
// the boot time, in seconds.
func (r *Record) Shown(now span.Instant, boot, margin int64) inventory.PowerSetting {
	set := inventory.PowerSetting{BootSeconds: r.BootSeconds(0), BootOtherwise: boot}
	switch r.Phase {
	case Awake:
	case Waking:
		if r.Attempt > 0 {
			set.Power, set.Problem = inventory.PowerFailed, "it did not wake up; Almanac tries again"
			break
		}
		set.Power, set.WakeDelay = inventory.PowerWaking, margin
	case Failed:
		set.Power, set.Problem = inventory.PowerFailed, r.Reason
	default:
		set.Power, set.WakeDelay = inventory.PowerSleeping, margin
		if r.Phase == Stopping && r.Order != nil {
			set.WakeDelay += r.Order.Patience // the machine has to stop first
		}
		if h := r.Hold; h.Holds(now) && (h.Action == HoldOff || h.Action == HoldStandby) {
			// A hold without an end may last forever, so the host counts as failed.
			if h.Until == 0 {
				set.Power, set.Problem = inventory.PowerFailed, "an operator holds it off"+h.because()
			} else {
				set.WakeDelay += int64(h.Until - now)
			}
		}
	}
	return set
}

// BootSeconds returns the 95th percentile of the host's boot times (nearest rank), which is the
// longest of fewer than 20; it returns otherwise if there are none.
func (r *Record) BootSeconds(otherwise int64) int64 {
	n := len(r.Boots)
	if n == 0 {
		return otherwise
	}
	var room [mostBoots]int64
	longest := append(room[:0], make([]int64, n-(n*95+99)/100+1)...) // the longest boots, the longest first; the last of them is the percentile
	for _, b := range r.Boots {
		for i := range longest {
			if b > longest[i] {
				b, longest[i] = longest[i], b
			}
		}
	}
	return longest[len(longest)-1]
}
