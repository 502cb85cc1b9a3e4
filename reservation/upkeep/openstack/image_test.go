// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"net/http"
	"testing"

	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Nova uses the traits of an image in addition to those of the flavor, so an image with the
// fence's trait would admit any tenant through the fence
// (nova/scheduler/request_filter.py, isolate_aggregates). The lab's Glance has the property
// protections of the operator's guide.
func TestNoTenantSetsTheFencesTraitsOnAnImage(t *testing.T) {
	l := newLab(t)
	create := func(who *labtest.REST, property string) int {
		var made struct{ ID string }
		status := who.Do("POST", "image", "/v2/images", map[string]any{
			"name": "test-upkeep-openstack", "disk_format": "raw", "container_format": "bare", property: "required",
		}, &made)
		if made.ID != "" {
			t.Cleanup(func() { l.admin.Must("DELETE", "image", "/v2/images/"+made.ID, nil, nil) })
		}
		return status
	}
	for _, trait := range []string{fence.Reserved, fence.Shared, fence.OwnName("r1")} {
		if status := create(l.owner, "trait:"+trait); status != http.StatusForbidden {
			t.Errorf("a tenant sets %s on an image: %d", trait, status)
		}
	}
	if status := create(l.owner, "trait:CUSTOM_OTHER"); status != http.StatusCreated {
		t.Errorf("a tenant cannot set another trait: %d", status)
	}
}
