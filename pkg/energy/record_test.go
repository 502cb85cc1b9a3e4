// SPDX-License-Identifier: Apache-2.0

package energy

import "testing"

func TestTheBootTimeIsThe95thPercentileOfAnyNumberOfBoots(t *testing.T) {
	var r Record
	if got := r.BootSeconds(7); got != 7 {
		t.Errorf("%d without a boot, want 7", got)
	}
	for n := 1; n <= 100; n++ { // more than a record remembers, as another version may have stored
		r.Boots = append(r.Boots, int64(101-n))
	}
	if got := r.BootSeconds(7); got != 95 || r.Boots[0] != 100 {
		t.Errorf("%d of 1 to 100, want 95; the boots begin with %d", got, r.Boots[0])
	}
}
