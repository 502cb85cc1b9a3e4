// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// testOwners compares the condition of the store with BelongsTo, for each text of a reservation: what is asked for one project
// is what belongs to it of what is asked for all.
func testOwners(t *testing.T, s Subject) {
	projects := map[string]bool{}
	var before string
	for i := range 24 {
		r := anyReservation(fmt.Sprint("r", i)).Example(i)
		if i%2 == 1 {
			r.ProjectID = before
		}
		before = r.ProjectID
		mustCreate(t, s, r)
		eachText(reflect.ValueOf(&r).Elem(), "", func(_ string, v reflect.Value) { projects[v.String()] = true })
	}
	last := lastPlace(t, s) // what has changed since then is in each answer
	delete(projects, "")    // a question without a project is about all
	questions := map[string]func(project string) []owned{
		"a list": func(project string) (found []owned) {
			for _, r := range mustList(t, s, reservation.Query{ProjectID: project, Statuses: reservation.Statuses}) {
				found = append(found, owned{r.ID, r.BelongsTo})
			}
			return found
		},
		"what is live": func(project string) (found []owned) {
			for _, r := range mustRecall(t, s, booking.Recall{Since: last, All: project == "", Project: project}).Reservations {
				found = append(found, owned{r.ID, r.BelongsTo})
			}
			return found
		},
	}
	if reader, is := s.(reservation.LeaseReader); is {
		questions["leases"] = func(project string) (found []owned) {
			list, err := listed(t, reader, reservation.LeaseQuery{ProjectID: project})
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range list {
				found = append(found, owned{l.ID, l.BelongsTo})
			}
			return found
		}
	}
	if reader, is := s.(pastReader); is {
		questions["the past"] = func(project string) (found []owned) {
			page, _, err := reader.Past(t.Context(), reservation.PastQuery{Overlaps: span.Always, ProjectID: project, Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page {
				found = append(found, owned{r.Reservation.ID, r.Reservation.BelongsTo})
			}
			return found
		}
	}
	for name, ask := range questions {
		all := ask("")
		if len(all) == 0 {
			t.Errorf("%s of all is empty", name)
		}
		for project := range projects {
			want, got := map[string]bool{}, map[string]bool{}
			for _, one := range all {
				if one.belongsTo(project) {
					want[one.id] = true
				}
			}
			for _, one := range ask(project) {
				got[one.id] = true
			}
			if d := diff(want, got); d != "" {
				t.Errorf("%s of %q (-BelongsTo +store); pkg/store/owner.go and reservation/owner.go change together:\n%s", name, project, d)
			}
		}
	}
}

// owned is a reservation or a lease, with its BelongsTo.
type owned struct {
	id        string
	belongsTo func(project string) bool
}
