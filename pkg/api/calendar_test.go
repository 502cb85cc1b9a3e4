// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
)

// calendar returns the calendar that the query selects.
func (p caller) calendar(query string) v1.Calendar {
	p.cloud.t.Helper()
	return want[v1.Calendar](p.cloud.t, p.get("/v1/calendar?"+query), http.StatusOK)
}

// claimed returns the claims of a calendar as "host name status", or "host mine" and "host theirs"
// for those without a name.
func claimed(calendar v1.Calendar) []string {
	list := []string{}
	for _, h := range calendar.Hosts {
		for _, claim := range h.Claims {
			text := h.Host + " " + claim.Name + " " + claim.Status
			if claim.Name == "" {
				text = h.Host + map[bool]string{true: " mine ", false: " theirs "}[claim.Mine] + claim.Status
			}
			list = append(list, text)
		}
	}
	return list
}

func TestThePastOfTheCalendarHasTheClaimsAsTheyWere(t *testing.T) {
	c := start(t, setup{})
	c.demo.book(`{"name": "ended", "duration": 600}`)
	canceled := c.demo.book(`{"name": "canceled", "duration": 3600}`)
	c.wait(0)
	c.wait(300)
	c.demo.delete("/v1/reservations/" + canceled.ID)
	never := c.demo.bookAt("never", 3600)
	c.demo.delete("/v1/reservations/" + never.ID)
	c.wait(300)
	past := c.admin.calendar("start=" + at(-60) + "&end=" + at(7200))
	if diff := cmp.Diff([]string{"A ended ended", "B canceled canceled"}, claimed(past)); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if end := past.Hosts[1].Claims[0].End; end != noon.Add(300).Time() {
		t.Errorf("the canceled one ends at %v, not when it was canceled", end)
	}
	if got := claimed(c.admin.calendar("start=" + at(600))); len(got) > 0 {
		t.Errorf("from now on there is %v", got)
	}
}

func TestWhatACallerSeesOfAClaim(t *testing.T) {
	c := start(t, setup{})
	c.demo.book(`{"name": "running", "duration": 7200}`)
	c.wait(0)
	c.demo.bookAt("ahead", 3600)
	query := "start=" + at(0) + "&end=" + at(8000) + "&host=A,B"
	for _, test := range []struct {
		token string
		want  []string
	}{
		{"demo/member", []string{"A running active", "B ahead pending"}},
		{"other/member", []string{"A theirs ", "B theirs "}},
		{"other/admin", []string{"A running active", "B ahead pending"}},
		{"system/reader", []string{"A running active", "B ahead pending"}},
	} {
		if diff := cmp.Diff(test.want, claimed(caller{c, test.token}.calendar(query))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.token, diff)
		}
	}
}

// The pages together are the whole, whatever their length.
//
//make:test-drawn
func TestThePagesOfTheCalendarAreTheCalendar(t *testing.T) {
	hosts := make([]inventory.Host, 13)
	for i := range hosts {
		hosts[i] = machine(fmt.Sprintf("host-%02d", i))
		hosts[i].Properties = map[string]inventory.Value{"rack": inventory.NumberValue(float64(i % 3))}
	}
	c := start(t, setup{hosts: hosts})
	for list, rows := range map[string]string{"host-[01-02,12]": "host-01 host-02 host-12", "host-03&host=host-[00-04/4],host-03": "host-00 host-03 host-04"} {
		var got []string
		for _, h := range want[v1.Calendar](t, c.demo.get("/v1/calendar?host="+list), http.StatusOK).Hosts {
			got = append(got, h.Host)
		}
		if strings.Join(got, " ") != rows {
			t.Errorf("%s selects %v, want %s", list, got, rows)
		}
	}
	for i := range 9 {
		c.demo.book(fmt.Sprintf(`{"name": "r%d", "quantity": 3, "start_time": %q, "duration": 600}`, i, at(int64(600*(1+i%4)))))
	}
	rapid.Check(t, func(rt *rapid.T) {
		query := url.Values{"start": {at(0)}, "end": {at(rapid.Int64Range(1, 4000).Draw(rt, "end"))}}
		if rapid.Bool().Draw(rt, "filtered") {
			query.Set("filter", fmt.Sprintf(`["=", "$rack", %d]`, rapid.IntRange(0, 3).Draw(rt, "rack")))
		}
		whole := c.demo.calendar(query.Encode())
		query.Set("limit", strconv.Itoa(rapid.IntRange(1, 14).Draw(rt, "limit")))
		var pages []v1.HostCalendar
		for {
			page := c.demo.calendar(query.Encode())
			pages = append(pages, page.Hosts...)
			if page.Next == "" {
				break
			}
			query.Set("marker", string(page.Next))
		}
		if diff := cmp.Diff(whole.Hosts, append([]v1.HostCalendar{}, pages...)); diff != "" || whole.Next != "" {
			rt.Errorf("%v: (-whole +pages):\n%s", query, diff)
		}
	})
}

func TestTheSharesOfARowDoNotExceedIt(t *testing.T) {
	c := start(t, setup{})
	for _, size := range []string{`{"vcpus": 1, "memory_mb": 16384}`, `{"vcpus": 4}`} {
		c.demo.book(fmt.Sprintf(`{"name": "r", "kind": "instance", "resources": %s, "start_time": %q, "duration": 600, "host_properties": ["=", "$name", "A"]}`, size, at(60)))
	}
	claims := c.demo.calendar("host=A").Hosts[0].Claims
	if len(claims) != 2 || claims[0].Share != 0.5 || claims[1].Share != 0.5 {
		t.Errorf("half of the memory and half of the vCPUs are %v", claims)
	}
}

func TestTheFactsAreThoseThatTheCallerMaySee(t *testing.T) {
	up, sleeping, broken, gone := machine("A"), machine("B"), machine("C"), machine("D")
	up.Properties = map[string]inventory.Value{"gpu": inventory.StringValue("a100"), "owner": inventory.StringValue("physics")}
	up.Instances = []inventory.Instance{{ID: "1", Preemptible: true}, {ID: "2"}}
	up.InstanceCount, up.Zone, up.Aggregates = 2, "az1", []string{"fast"}
	sleeping.Power, broken.Problem, gone.Reservable = inventory.PowerSleeping, "it is disabled: the police took the disks", false
	c := start(t, setup{hosts: []inventory.Host{up, sleeping, broken, gone}})
	want[v1.Property](t, c.admin.patch("/v1/properties/owner", `{"hidden": true}`), http.StatusOK)
	remembered(c, energy.Record{Host: "B", Phase: energy.Asleep, Since: noon - 60})
	facts := func(p caller) (all []v1.HostFacts) {
		for _, h := range p.calendar("facts=true").Hosts {
			all = append(all, *h.Facts)
		}
		return all
	}
	bare := func(state, problem string) v1.HostFacts {
		return v1.HostFacts{Aggregates: []string{}, Properties: map[string]any{}, Reservable: true, State: state, Problem: problem}
	}
	tenants := []v1.HostFacts{
		{Zone: "az1", Aggregates: []string{"fast"}, Properties: map[string]any{"gpu": "a100"}, Reservable: true, State: "up", InstanceCount: 2},
		bare("sleeping", ""), bare("out_of_order", "it accepts no instances now"), bare("up", ""),
	}
	tenants[3].Reservable = false
	if diff := cmp.Diff(tenants, facts(c.demo)); diff != "" {
		t.Errorf("a member sees (-want +got):\n%s", diff)
	}
	admins := slices.Clone(tenants)
	for i := range admins {
		admins[i].PreemptibleCount = new(0)
	}
	admins[0].Properties, admins[0].PreemptibleCount = map[string]any{"gpu": "a100", "owner": "physics"}, new(1)
	admins[1].Phase, admins[1].PhaseSince = "asleep", new((noon - 60).Time())
	admins[2].Problem = broken.Problem
	if diff := cmp.Diff(admins, facts(c.admin)); diff != "" {
		t.Errorf("an admin sees (-want +got):\n%s", diff)
	}
}

func TestFactsAreForThoseWhoMayListHosts(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.Policy = rules(t, `"hosts:list": "role:auditor"`) }})
	if e := wantError(t, c.demo.get("/v1/calendar?facts=true"), http.StatusForbidden); e.Message == "" {
		t.Errorf("got %v", e)
	}
	c.demo.calendar("")
}

func TestMistakesInACalendarRequestNameTheParameter(t *testing.T) {
	c := start(t, setup{})
	for query, field := range map[string]string{
		"filter=" + url.QueryEscape(`["=", "$vcpu", 8`): "filter", "marker=AA": "marker", "limit=1001": "limit", "limit=0": "limit", "facts=perhaps": "facts",
	} {
		if e := wantError(t, c.demo.get("/v1/calendar?"+query), http.StatusBadRequest); e.Field != field {
			t.Errorf("%s: the mistake is in %q: %s", query, e.Field, e.Message)
		}
	}
	if got := c.demo.calendar("filter=" + url.QueryEscape(`["=", "$nothing", 8]`)); len(got.Hosts) != 0 || !slices.Equal(got.UnknownProperties, []string{"nothing"}) {
		t.Errorf("an unknown property selects %v", got)
	}
}

// again reports whether the answer to path changes: it asks with the tag of the answer before change.
func (p caller) again(path string, change func()) (changed bool) {
	p.cloud.t.Helper()
	before := p.get(path)
	change()
	after := p.send("GET", path, "", "If-None-Match", before.header.Get("ETag"))
	full := p.get(path)
	if same := string(before.body) == string(full.body); same != (after.status == http.StatusNotModified) {
		p.cloud.t.Errorf("%s: the answer is the same: %v, but asked again the status is %d", path, same, after.status)
	}
	if after.status == http.StatusNotModified && len(after.body) > 0 {
		p.cloud.t.Errorf("a 304 has a body: %s", after.body)
	}
	if !slices.Equal(after.header.Values("Vary"), before.header.Values("Vary")) {
		p.cloud.t.Errorf("%s: Vary is %v, and was %v", path, after.header.Values("Vary"), before.header.Values("Vary"))
	}
	return after.status != http.StatusNotModified
}

func TestTheTagChangesIfAndOnlyIfTheAnswerDoes(t *testing.T) {
	c := start(t, setup{})
	path := "/v1/calendar?facts=true&start=" + at(-3600) + "&end=" + at(7200)
	var r v1.Reservation
	for _, step := range []struct {
		name    string
		change  func()
		changes bool
	}{
		{"nothing", func() {}, false},
		{"time passes", func() { c.wait(1) }, false},
		{"a booking", func() { r = c.other.book(`{"name": "r", "duration": 3600}`) }, true},
		{"its start", func() { c.wait(1) }, false}, // others do not see the status
		{"its end", func() { c.other.delete("/v1/reservations/" + r.ID) }, true},
		{"a setting of a host", func() { c.admin.patch("/v1/hosts/A", `{"properties": {"x": 1}}`) }, true},
		{"a hidden property", func() { c.admin.patch("/v1/properties/x", `{"hidden": true}`) }, true},
	} {
		t.Run(step.name, func(t *testing.T) {
			before := c.demo.get(path)
			step.change()
			after := c.demo.send("GET", path, "", "If-None-Match", `"x", W/`+before.header.Get("ETag"))
			same := string(before.body) == string(c.demo.get(path).body)
			if same == step.changes {
				t.Errorf("the answer is the same: %v", same)
			}
			if !same && after.status != http.StatusOK {
				t.Errorf("the answer has changed, but the status is %d", after.status)
			}
		})
	}
	if c.demo.again(path, func() {}) || !c.demo.again(path, func() { c.demo.book(`{"name": "mine", "duration": 60}`) }) {
		t.Error("the tag is wrong")
	}
	tag := c.demo.get(path).header.Get("ETag")
	for _, p := range []caller{c.other, c.admin, {c, "demo/member,auditor"}} {
		if a := p.send("GET", path, "", "If-None-Match", tag); a.status != http.StatusOK {
			t.Errorf("%s is answered with %d for the tag of another caller", p.token, a.status)
		}
	}
}

// A reservation that came and went between two requests leaves the live ones as they were.
func TestTheTagKnowsWhatCameAndWent(t *testing.T) {
	c := start(t, setup{})
	changed := c.demo.again("/v1/calendar?start="+at(-3600)+"&end="+at(7200), func() {
		r := c.other.book(`{"name": "r", "duration": 3600}`)
		c.wait(60)
		c.other.delete("/v1/reservations/" + r.ID)
	})
	if !changed {
		t.Error("the tag is the same")
	}
}

func TestReplicasHaveTheSameTags(t *testing.T) {
	first := start(t, setup{})
	second := start(t, setup{file: first.file})
	path := "/v1/calendar?facts=true&start=" + at(-3600) + "&end=" + at(7200)
	tags := func() (string, string) {
		must(t, second.bookings.Follow(t.Context()))
		return first.demo.get(path).header.Get("ETag"), second.demo.get(path).header.Get("ETag")
	}
	if a, b := tags(); a != b {
		t.Errorf("an empty calendar has the tags %s and %s", a, b)
	}
	r := first.demo.book(`{"name": "r", "duration": 3600}`)
	// The second replica does not know it yet, so its answer must not have the tag of the first.
	early := second.demo.get(path)
	if late := first.demo.send("GET", path, "", "If-None-Match", early.header.Get("ETag")); late.status != http.StatusOK {
		t.Errorf("the answer without the reservation counts as current: %v", late)
	}
	a, b := tags()
	if a != b || a == early.header.Get("ETag") {
		t.Errorf("with a reservation the tags are %s and %s, and were %s", a, b, early.header.Get("ETag"))
	}
	second.demo.delete("/v1/reservations/" + r.ID)
	must(t, first.bookings.Follow(t.Context()))
	if a, b := tags(); a != b {
		t.Errorf("afterwards the tags are %s and %s", a, b)
	}
}

func TestTheLimitsComeWithWhatTheProjectUses(t *testing.T) {
	limits := v1.LimitValues{}
	c := start(t, setup{})
	c.demo.book(`{"name": "now", "duration": 3600}`)
	c.demo.book(fmt.Sprintf(`{"name": "later", "quantity": 2, "start_time": %q, "duration": 1800}`, at(1800)))
	c.other.book(`{"name": "others", "duration": 60}`)
	used := v1.LimitedUsage{Reservations: 2, HostsNow: 1, MostHosts: 3, HostHours: 2}
	for path, p := range map[string]caller{"/v1/limits": c.demo, "/v1/limits?project_id=demo": {c, "system/reader"}} {
		if diff := cmp.Diff(v1.Limits{ProjectID: "demo", Limits: limits, Used: used}, want[v1.Limits](t, p.get(path), http.StatusOK)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// failing is an energy controller that cannot read its records.
type failing struct{ api.Energy }

func (failing) Hosts(context.Context) ([]controller.HostStatus, error) {
	return nil, context.DeadlineExceeded
}

func TestFactsWithoutTheirPhasesAreNoAnswer(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.Energy = failing{o.Energy} }})
	wantError(t, c.admin.get("/v1/calendar?facts=true"), http.StatusServiceUnavailable)
	c.demo.calendar("facts=true") // does not show phases
}
