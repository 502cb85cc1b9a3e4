// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"
)

// The statements name the columns, and the log of changes has the fields in this order.
func TestTheColumnsOfReservationsAreThoseThatStatementsName(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{reservationColumns.names, "id, project_id, user_id, name, kind, quantity, host_properties, policy, vcpus, memory_mb, disk_gb, " +
			"custom_resources, affinity, image, on_end, before_end, status, start_at, end_at, delayed_by_boot, degraded, created_at, updated_at, " +
			"version, lease_id, membership, maintenance, released, promised_end, together, notice, window_start, window_end, series_id, occurrence, hold"},
		{claimColumns.names, "reservation_id, seq, host, end_at, start_at, slices"},
		{eventColumns.names, "reservation_id, seq, type, due_at, state, done_at, detail, holder, until_at"},
	} {
		if c.got != c.want {
			t.Errorf("columns %s, want %s", c.got, c.want)
		}
	}
}
