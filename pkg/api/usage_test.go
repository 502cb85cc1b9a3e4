// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/energy"
)

// used returns a cloud with three hosts: demo reserved A for an hour and canceled after half of it,
// other reserves B, and C sleeps.
func used(t *testing.T) *cloud {
	c := start(t, setup{})
	ours := c.demo.book(`{"name": "ours", "duration": 3600}`)
	c.other.book(fmt.Sprintf(`{"name": "theirs", "start_time": %q, "duration": 3600, "host_properties": ["=", "$name", "B"]}`, at(1800)))
	c.wait(0)
	remembered(c, energy.Record{Host: "C", Phase: energy.Asleep, Since: noon}, energy.Entry{At: noon, Host: "C", Kind: energy.EntryPhase, Text: "asleep: it was idle"})
	c.wait(1800)
	c.demo.delete("/v1/reservations/" + ours.ID)
	c.wait(1800)
	return c
}

func TestTheUseOfProjectsAndHosts(t *testing.T) {
	c := used(t)
	row := func(project, host string, reserved, used float64, rest ...float64) v1.UsageRow {
		r := v1.UsageRow{ProjectID: project, Host: host, Reserved: reserved, Used: used}
		if len(rest) > 0 {
			r.Maintenance, r.Idle, r.Asleep, r.Capacity = new(0.0), &rest[0], &rest[1], &rest[2]
		}
		return r
	}
	span := "start=" + at(0) + "&end=" + at(7200)
	total := row("", "", 1.5, 1, 1, 1, 6)
	for _, test := range []struct {
		by    caller
		query string
		rows  []v1.UsageRow
		total v1.UsageRow
	}{
		{c.admin, span, []v1.UsageRow{row("demo", "", 0.5, 0.5), row("other", "", 1, 0.5)}, total},
		{c.admin, span + "&by=host", []v1.UsageRow{row("", "A", 0.5, 0.5, 0.5, 0, 2), row("", "B", 1, 0.5, 0.5, 0, 2), row("", "C", 0, 0, 0, 1, 2)}, total},
		{c.admin, span + "&project_id=other", []v1.UsageRow{row("other", "", 1, 0.5)}, row("", "", 1, 0.5)},
		{c.demo, span, []v1.UsageRow{row("demo", "", 0.5, 0.5)}, row("", "", 0.5, 0.5)},
		{caller{c, "third/reader"}, span, []v1.UsageRow{}, row("", "", 0, 0)},
		{c.demo, "", []v1.UsageRow{row("demo", "", 0.5, 0.5)}, row("", "", 0.5, 0.5)}, // the last week
	} {
		got := want[v1.Usage](t, test.by.get("/v1/usage?"+test.query), http.StatusOK)
		if diff := cmp.Diff([]any{test.rows, test.total}, []any{got.Rows, got.Total}); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", test.by.token, test.query, diff)
		}
	}
}

func TestTheUseAsCSV(t *testing.T) {
	c := used(t)
	path := "/v1/usage?start=" + at(0) + "&end=" + at(7200)
	period := at(0) + "," + at(7200) + ","
	projects := "start,end,project_id,reserved_host_hours,used_host_hours\n" + period + "demo,0.5,0.5\n" + period + "other,1,0.5\n"
	hosts := "start,end,host,reserved_host_hours,used_host_hours,maintenance_host_hours,idle_host_hours,asleep_host_hours,capacity_host_hours\n" +
		period + "A,0.5,0.5,0,0.5,0,2\n" + period + "B,1,0.5,0,0.5,0,2\n" + period + "C,0,0,0,0,1,2\n"
	for path, want := range map[string]struct{ text, by string }{
		path + "&format=csv":         {projects, "project"},
		path + "&format=csv&by=host": {hosts, "host"},
	} {
		a := c.admin.get(path)
		if string(a.body) != want.text || a.header.Get("Content-Type") != "text/csv; charset=utf-8" {
			t.Errorf("%s: got %v %v", path, a.header, a)
		}
		file := `attachment; filename="almanac-host-hours-by-` + want.by + "-" + noon.Time().Format("20060102T1504Z") + "-" + noon.Add(7200).Time().Format("20060102T1504Z") + `.csv"`
		if got := a.header.Get("Content-Disposition"); got != file {
			t.Errorf("%s is the file %s, not %s", path, got, file)
		}
	}
	if a := c.admin.send("GET", path, "", "Accept", "text/csv"); string(a.body) != projects {
		t.Errorf("got %v", a)
	}
	if a := c.admin.send("GET", path+"&format=json", "", "Accept", "text/csv"); a.header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Errorf("got %v", a)
	}
}

func TestAReportIsBounded(t *testing.T) {
	c := start(t, setup{})
	for query, field := range map[string]string{
		"?start=" + at(-401*24*3600): "start", "?start=" + at(60): "end", "?by=user": "by", "?format=xml": "format",
	} {
		if e := wantError(t, c.admin.get("/v1/usage"+query), http.StatusBadRequest); e.Field != field {
			t.Errorf("%s: the mistake is in %q: %s", query, e.Field, e.Message)
		}
	}
	if a := c.demo.get("/v1/usage?project_id=other"); a.status != http.StatusForbidden {
		t.Errorf("another project's use is answered with %v", a)
	}
}

// A reservation of three hosts that shrinks to one after an hour has held 3 host-hours by then.
func TestUsageCountsWhatAShrunkReservationHeld(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(`{"name": "r", "quantity": 3, "duration": 7200}`)
	c.wait(0)
	c.wait(3600)
	span := "start=" + at(0) + "&end=" + at(3600)
	before := want[v1.Usage](t, c.admin.get("/v1/usage?by=host&"+span), http.StatusOK)
	cal0 := c.admin.get(fmt.Sprintf("/v1/calendar?start=%s&end=%s", at(0), at(3600)))
	want[v1.Reservation](t, c.demo.patch("/v1/reservations/"+r.ID, `{"quantity": 1}`), http.StatusOK)
	after := want[v1.Usage](t, c.admin.get("/v1/usage?by=host&"+span), http.StatusOK)
	cal1 := c.admin.get(fmt.Sprintf("/v1/calendar?start=%s&end=%s", at(0), at(3600)))
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("usage of the past hour (-before +after the change):\n%s", diff)
	}
	if held := strings.Count(string(cal1.body), r.ID); held != 3 {
		t.Errorf("the calendar of the past hour has %d of the 3 claims:\n%s\n%s", held, cal0.body, cal1.body)
	}
}

// A host that has failed to wake up is tried again later: it did not sleep in between, whatever the start of the report.
func TestAFailedHostThatIsTriedAgainDidNotSleep(t *testing.T) {
	c := start(t, setup{})
	entry := func(seconds int64, word string) energy.Entry {
		return energy.Entry{At: noon.Add(seconds), Host: "C", Kind: energy.EntryPhase, Text: word + ": x"}
	}
	remembered(c, energy.Record{Host: "C", Phase: energy.Waking, Since: noon.Add(3000)},
		entry(0, "asleep"), entry(300, "waking"), entry(600, "failed"), entry(3000, "waking"))
	c.wait(3600)
	asleep := func(from, to int64) float64 {
		u := want[v1.Usage](t, c.admin.get("/v1/usage?by=host&start="+at(from)+"&end="+at(to)), http.StatusOK)
		return *u.Total.Asleep
	}
	if whole, later := asleep(0, 3600), asleep(900, 3600); later > whole || later != 0 {
		t.Errorf("asleep: %v h of the hour, but %v h of its last 45 minutes, in which it was failed, then waking", whole, later)
	}
}
