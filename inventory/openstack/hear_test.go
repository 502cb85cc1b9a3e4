// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"testing"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/tests/oslotest/memory"
)

func TestOnlyEventsAboutHostsAndInstancesAreChanges(t *testing.T) {
	for kind, want := range map[string]bool{
		"instance.create.end": true, "instance.update": true, "instance.live_migration_post_dest.end": true,
		"service.update": true, "aggregate.add_host.end": true, "compute.exception": true,
		"instance.exists": false, "flavor.create": false, "keypair.create.end": false,
		"scheduler.select_destinations.end": false, "compute_task.build_instances.error": false, "": false,
	} {
		e := NewEvents(memory.New(), EventOptions{Queue: "almanac"})
		if err := e.observe(t.Context(), oslo.Notification{EventType: kind}); err != nil {
			t.Error(err)
		}
		if got := len(e.heard) > 0; got != want {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
}
