// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

func TestALookAsksForTheTraitsOfThoseProvidersAloneThatHaveChanged(t *testing.T) {
	l := newLab(t)
	r := l.reservation(reservation.Hosts, 2)
	l.lay(r)
	look := func() (fence.Layout, int64) {
		before := l.placement.Calls()
		layout, err := l.cloud.Layout(t.Context())
		l.must(err)
		return layout, l.placement.Calls() - before
	}
	_, _ = look()
	_, least := look()
	host := r.Claims[0].Host
	l.provide(host, "traits", []string{"COMPUTE_NODE", fence.Reserved})
	layout, calls := look()
	if calls != least+1 {
		t.Errorf("after a change on one host a look makes %d calls to Placement, want one more than %d", calls, least)
	}
	if has := layout.Traits[host]; !slices.Equal(has, []string{fence.Reserved}) {
		t.Errorf("the host has the traits %v", has)
	}
	if has := layout.Traits[r.Claims[1].Host]; !slices.Contains(has, ownName(r.ID)) {
		t.Errorf("the other host has lost its traits: %v", has)
	}
	if !slices.Contains(layout.TraitNames, ownName(r.ID)) {
		t.Errorf("the trait of the reservation is not among %v", layout.TraitNames)
	}
}
