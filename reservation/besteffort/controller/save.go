// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"reflect"

	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// save stores the VMs that have changed since they were last stored. After an error the step does
// no further action: only what is stored may be done.
func (c *Controller) save(ctx context.Context, s *step) error {
	var changed []state.VM
	for i := range s.requests {
		for _, v := range s.requests[i].VMs {
			if before := s.stored[v.ID]; !reflect.DeepEqual(before, v) {
				changed = append(changed, v)
				if before.Phase != v.Phase {
					c.Log.InfoContext(ctx, "a VM of best-effort work enters a phase", "request", s.requests[i].ID, "vm", v.ID, "server", v.Server,
						"host", v.Node, "was", before.Phase, "is", v.Phase, "reason", v.Reason)
				}
			}
		}
	}
	if len(changed) == 0 {
		return nil
	}
	if err := c.Records.SaveBestEffortVMs(ctx, s.held.Lease, changed); err != nil {
		s.end(err)
		return err
	}
	for _, v := range changed {
		s.stored[v.ID] = v
	}
	return nil
}
