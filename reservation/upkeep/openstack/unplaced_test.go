// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Nova finds no host for the server, and the server still has an allocation.
func TestWhatAServerInErrorHasInPlacementIsFoundAfterAWhileAndReleased(t *testing.T) {
	l := newLab(t)
	var huge struct{ Flavor struct{ ID string } }
	l.admin.Must(http.MethodPost, "compute", "/flavors", map[string]any{"flavor": map[string]any{
		"name": "huge-" + t.Name(), "vcpus": 100_000, "ram": 64, "disk": 0}}, &huge)
	t.Cleanup(func() { l.admin.Must(http.MethodDelete, "compute", "/flavors/"+huge.Flavor.ID, nil, nil) })
	id := l.ask(l.admin, huge.Flavor.ID, "")
	failed := l.settled(id, func(i inventory.Instance) bool { return i.Status == "ERROR" && i.Task == "" })
	if failed.Host != "" {
		t.Fatalf("the server is on host %s", failed.Host)
	}
	found := func(now time.Time) bool {
		list, err := l.cloud.Unplaced(t.Context(), span.At(now))
		l.must(err)
		return slices.ContainsFunc(list, func(i inventory.Instance) bool { return i.ID == id })
	}
	later := time.Now().Add(time.Hour)
	if found(later) {
		t.Error("a server without an allocation is found")
	}
	l.must(l.placement.Claim(t.Context(), []placing.Claim{{
		Consumer: id, ProjectID: failed.ProjectID, UserID: failed.UserID,
		Allocations: placing.Allocations{l.provider(l.free[0]): {"VCPU": 1}},
	}}))
	if found(time.Now()) {
		t.Error("a server that has just failed is found: Nova may be cleaning up")
	}
	if !found(later) {
		t.Error("a server in ERROR with an allocation is not found")
	}
	l.must(l.cloud.Release(t.Context(), id))
	if has, err := l.placement.AllocationsOf(t.Context(), id); err != nil || len(has.Allocations) > 0 {
		t.Errorf("the server still has %v, %v", has.Allocations, err)
	}
}
