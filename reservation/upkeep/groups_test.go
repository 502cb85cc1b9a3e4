// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"context"
	"log/slog"
	"maps"
	"testing"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// serverGroups are server groups by id, with their names.
type serverGroups map[string]string

func (g serverGroups) GroupNames(context.Context) (map[string]string, error) {
	return maps.Clone(g), nil
}

func (g serverGroups) DeleteGroup(_ context.Context, id string) error {
	delete(g, id)
	return nil
}

func TestOnlyTheServerGroupThatWasCreatedForAReservationGoesWithIt(t *testing.T) {
	w := newTown(t, "a")
	for n, status := range map[int]reservation.Status{1: reservation.Active, 2: reservation.Ended, 3: reservation.Canceled, 4: reservation.Ended} {
		r := w.book(n, 0, "a")
		r.Status = status
		if n != 4 {
			r.Membership.ServerGroup = "of-" + id(n)
		}
		w.set(r)
	}
	groups := func() serverGroups {
		return serverGroups{
			"of-" + id(1): "reservation:" + id(1), "of-" + id(2): "reservation:" + id(2), "of-" + id(3): "reservation:" + id(3),
			"tenant's": "reservation:" + id(2), "of no group": "reservation:" + id(4), "unknown": "reservation:" + id(5), "web": "web", "odd": "reservation:x",
			"of-" + id(4): "renamed",
		}
	}
	g := groups()
	job := upkeep.Groups(upkeep.GroupOptions{Groups: g, Records: w, Leases: &shared{}, Log: slog.New(slog.DiscardHandler)})
	if err := job.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := groups()
	delete(want, "of-"+id(2))
	delete(want, "of-"+id(3))
	if !maps.Equal(g, want) {
		t.Errorf("left are %v, want %v", g, want)
	}
	all, err := upkeep.GroupsLeft(t.Context(), groups(), w, true)
	if err != nil || len(all) != 3 || all["of-"+id(1)].ID != id(1) {
		t.Errorf("of all reservations there are %v, %v", all, err)
	}
}
