// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// names returns the names in a list, page by page, following next.
func (p caller) names(path string) (pages [][]string) {
	p.cloud.t.Helper()
	for next := path; next != ""; {
		page := want[v1.Reservations](p.cloud.t, p.get(next), http.StatusOK)
		names := []string{}
		for _, r := range page.Reservations {
			names = append(names, r.Name)
		}
		pages = append(pages, names)
		if next = ""; page.Next != "" {
			next = path + "&marker=" + string(page.Next)
		}
	}
	return pages
}

// bookAt books one host for a minute.
func (p caller) bookAt(name string, seconds int64) v1.Reservation {
	p.cloud.t.Helper()
	return p.book(fmt.Sprintf(`{"name": %q, "start_time": %q, "duration": 60}`, name, at(seconds)))
}

func TestAListComesInPagesByStart(t *testing.T) {
	c := start(t, setup{})
	for i, name := range []string{"five", "four", "three", "two", "one"} {
		c.demo.bookAt(name, int64(600-100*i))
	}
	for limit, pages := range map[int][][]string{
		2:    {{"one", "two"}, {"three", "four"}, {"five"}},
		5:    {{"one", "two", "three", "four", "five"}},
		4:    {{"one", "two", "three", "four"}, {"five"}},
		1000: {{"one", "two", "three", "four", "five"}},
	} {
		if diff := cmp.Diff(pages, c.demo.names(fmt.Sprintf("/v1/reservations?limit=%d", limit))); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
	}
}

func TestPagesOfOneStartLoseAndRepeatNothing(t *testing.T) {
	c := start(t, setup{})
	want := []string{"a", "b", "c"}
	for _, name := range want {
		c.demo.bookAt(name, 600)
	}
	got := slices.Concat(c.demo.names("/v1/reservations?limit=1")...)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestAMarkerOutlivesItsReservation(t *testing.T) {
	c := start(t, setup{})
	first := c.demo.bookAt("first", 100)
	c.demo.bookAt("second", 200)
	c.demo.delete("/v1/reservations/" + first.ID)
	if got := c.demo.names("/v1/reservations?marker=" + first.ID); !cmp.Equal(got, [][]string{{"second"}}) {
		t.Errorf("got %v, want the second", got)
	}
}

func TestAListIsFiltered(t *testing.T) {
	c := start(t, setup{})
	c.demo.bookAt("over", 0)
	c.wait(100)
	c.demo.book(fmt.Sprintf(`{"name": "running", "end_time": %q}`, at(700)))
	c.wait(1)
	ahead := c.demo.bookAt("ahead", 800)
	vm := c.demo.book(fmt.Sprintf(`{"name": "vm", "kind": "instance", "resources": {"vcpus": 1}, "start_time": %q, "duration": 60}`, at(900)))
	given := c.demo.bookAt("given up", 1000)
	c.demo.delete("/v1/reservations/" + given.ID)
	foreign := c.other.bookAt("foreign", 1100)

	for query, names := range map[string][]string{
		"":                                    {"over", "running", "ahead", "vm"},
		"status=ended":                        {"over"},
		"status=pending":                      {"ahead", "vm"},
		"status=active&status=ended":          {"over", "running"},
		"status=active,ended":                 {"over", "running"},
		"status=canceled":                     {"given up"},
		"status=failed":                       {},
		"name=ahead":                          {"ahead"},
		"name=head":                           {},
		"name=given+up&status=canceled":       {"given up"},
		"kind=instance":                       {"vm"},
		"kind=host":                           {"over", "running", "ahead"},
		"kind=host&status=pending":            {"ahead"},
		"start=" + at(700):                    {"ahead", "vm"}, // "running" ends then
		"end=" + at(100):                      {"over"},        // "running" begins then
		"end=" + at(101):                      {"over", "running"},
		"start=" + at(59) + "&end=" + at(801): {"over", "running", "ahead"},
		"start=" + at(61) + "&end=" + at(800): {"running"},
		"id=" + ahead.ID:                      {"ahead"},
		"id=" + vm.ID + "," + ahead.ID:        {"ahead", "vm"},
		"id=" + vm.ID + "&id=" + ahead.ID:     {"ahead", "vm"},
		"id=" + given.ID + "," + foreign.ID:   {}, // canceled, and another project's
		"id=" + given.ID + "&status=canceled": {"given up"},
		"id=" + vm.ID + "&kind=host":          {},
		"id=unknown":                          {},
		"project_id=demo":                     {"over", "running", "ahead", "vm"},
		"all_projects=false":                  {"over", "running", "ahead", "vm"},
	} {
		if diff := cmp.Diff([][]string{names}, c.demo.names("/v1/reservations?"+query)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}

func TestAListNamesAtMostAHundredIDs(t *testing.T) {
	c := start(t, setup{})
	if a := c.demo.get("/v1/reservations?id=" + strings.Repeat("x,", 99) + "x"); a.status != http.StatusOK {
		t.Errorf("a hundred: %v", a)
	}
	if e := wantError(t, c.demo.get("/v1/reservations?id="+strings.Repeat("x,", 100)+"x"), http.StatusBadRequest); e.Field != "id" {
		t.Errorf("a hundred and one: %+v", e)
	}
}

func TestAnAdminListsEveryProject(t *testing.T) {
	c := start(t, setup{})
	c.demo.bookAt("ours", 100)
	c.other.bookAt("theirs", 200)
	for query, names := range map[string][]string{
		"":                                  {"ours"},
		"project_id=other":                  {"theirs"},
		"all_projects=true":                 {"ours", "theirs"},
		"all_projects=true&name=theirs":     {"theirs"},
		"all_projects=true&project_id=demo": {"ours"},
		"project_id=nobody":                 {},
	} {
		if diff := cmp.Diff([][]string{names}, c.admin.names("/v1/reservations?"+query)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
	for _, query := range []string{"all_projects=true", "project_id=demo"} {
		wantError(t, c.other.get("/v1/reservations?"+query), http.StatusForbidden)
	}
}

func TestATimeInAURLNeedsNoEscapes(t *testing.T) {
	c := start(t, setup{})
	c.demo.bookAt("one", 100)
	for time, pages := range map[string][][]string{
		"2026-11-20T13:01:40+01:00":   {{}},
		"2026-11-20T13:01:41+01:00":   {{"one"}},
		"2026-11-20T13:01:41%2B01:00": {{"one"}},
	} {
		if diff := cmp.Diff(pages, c.demo.names("/v1/reservations?end="+time)); diff != "" {
			t.Errorf("until %s (-want +got):\n%s", time, diff)
		}
	}
}
