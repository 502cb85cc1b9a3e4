// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// group books a group of an hour from noon on and returns it.
func (p caller) group(parts string) v1.Group {
	p.cloud.t.Helper()
	return want[v1.Group](p.cloud.t, p.post("/v1/groups", groupOf(parts)), http.StatusCreated)
}

func groupOf(parts string) string {
	return fmt.Sprintf(`{"name": "cluster", "start_time": %q, "duration": "1h", "parts": [%s]}`, at(3600), parts)
}

func quantities(g v1.Group) (list []int) {
	for _, r := range g.Reservations {
		list = append(list, r.Quantity)
	}
	return list
}

const twoToFour = `{"quantity": {"min": 2, "max": 4}}`

func TestAGroupReservesSeveralKindsOrNothing(t *testing.T) {
	c := start(t, setup{}) // three hosts
	g := c.demo.group(`{"kind": "instance", "quantity": 2, "resources": {"vcpus": 1}}, ` + twoToFour)
	if diff := gocmp.Diff([]int{2, 2}, quantities(g)); diff != "" {
		t.Errorf("the quantities differ (-want +got):\n%s", diff)
	}
	for _, r := range g.Reservations {
		if r.LeaseID == nil || *r.LeaseID != g.ID || !r.Start.Equal(g.Start) || !r.End.Equal(g.End) || r.Name != "cluster" {
			t.Errorf("%+v is no reservation of the group %s", r, g.ID)
		}
	}
	one := c.demo.post("/v1/groups", groupOf(`{}, {"quantity": 1}`))
	refused := want[v1.ErrorAnswer](t, one, http.StatusConflict)
	if r := refused.Refusal; r == nil || r.EarliestStart == nil || !r.EarliestStart.Equal(g.End) {
		t.Errorf("the refusal of a group that has no room before %v: %+v", g.End, r)
	}
	if got := want[v1.Reservations](t, c.demo.get("/v1/reservations"), http.StatusOK); len(got.Reservations) != 2 {
		t.Errorf("there are %d reservations after a refused group, want 2", len(got.Reservations))
	}
}

func TestTheOrderOfThePartsOfAGroupDoesNotDecideWhetherItIsBooked(t *testing.T) {
	const rare, any = `{"host_properties": ["=", "$name", "A"]}`, `{"quantity": 2}`
	for _, parts := range []string{rare + ", " + any, any + ", " + rare} {
		c := start(t, setup{})
		if g := c.demo.group(parts); len(g.Reservations) != 2 {
			t.Errorf("%s: %+v", parts, g)
		}
	}
}

func TestADryRunOfAGroupBooksNothingAndSaysWhatWouldBeBooked(t *testing.T) {
	c := start(t, setup{})
	offered := want[v1.GroupOfferAnswer](t, c.demo.post("/v1/groups?dry_run=true", groupOf(twoToFour)), http.StatusOK).Offer
	if len(offered.Parts) != 1 || offered.Parts[0].Quantity != 3 {
		t.Errorf("offered: %+v, want three hosts", offered)
	}
	g := c.demo.group(twoToFour)
	if got := quantities(g); len(got) != 1 || got[0] != 3 || !g.Start.Equal(offered.Start) {
		t.Errorf("booked: %v at %v, offered: %+v", got, g.Start, offered)
	}
}

func TestAGroupMovesAndIsCanceledAsAWhole(t *testing.T) {
	c := start(t, setup{})
	g := c.demo.group(`{}, {}`)
	path := "/v1/groups/" + g.ID
	body := fmt.Sprintf(`{"start_time": %q, "end_time": %q}`, at(7200), at(10800))
	if offered := want[v1.GroupOfferAnswer](t, c.demo.send("PATCH", path+"?dry_run=true", body), http.StatusOK).Offer; len(offered.Parts) != 2 {
		t.Errorf("offered: %+v", offered)
	}
	moved := want[v1.Group](t, c.demo.send("PATCH", path, body), http.StatusOK)
	for _, r := range moved.Reservations {
		if !r.Start.Equal(moved.Start) || moved.Start.Sub(g.Start).Hours() != 1 {
			t.Errorf("%s begins at %v, the group, which was at %v, at %v", r.ID, r.Start, g.Start, moved.Start)
		}
	}
	foreseen := want[v1.GroupCancellation](t, c.demo.send("DELETE", path+"?dry_run=true", ""), http.StatusOK)
	if len(foreseen.Reservations) != 2 {
		t.Errorf("foreseen: %+v", foreseen)
	}
	if a := c.demo.send("DELETE", path, ""); a.status != http.StatusNoContent {
		t.Fatalf("delete: %v", a)
	}
	if a := c.demo.get(path); a.status != http.StatusNotFound {
		t.Errorf("a canceled group: %v", a)
	}
	for _, r := range g.Reservations {
		if now := want[v1.Reservation](t, c.demo.get("/v1/reservations/"+r.ID), http.StatusOK); now.Status != "canceled" {
			t.Errorf("reservation %s is %s", r.ID, now.Status)
		}
	}
}

func TestGroupsAreListedInPagesWithoutReservationsThatBelongToNone(t *testing.T) {
	c := start(t, setup{})
	booked := func(name string, seconds int64) v1.Group {
		t.Helper()
		body := fmt.Sprintf(`{"name": %q, "start_time": %q, "duration": 60, "parts": [{}, {}]}`, name, at(seconds))
		return want[v1.Group](t, c.demo.post("/v1/groups", body), http.StatusCreated)
	}
	late, early, middle := booked("late", 900), booked("early", 300), booked("middle", 600)
	gone := booked("gone", 1200)
	c.demo.delete("/v1/groups/" + gone.ID)
	c.demo.bookAt("alone", 1500)
	for query, names := range map[string][][]string{
		"limit=50":            {{"early", "middle", "late"}},
		"limit=2":             {{"early", "middle"}, {"late"}},
		"name=middle":         {{"middle"}},
		"name=alone":          {nil},
		"marker=" + early.ID:  {{"middle", "late"}},
		"all_projects=false":  {{"early", "middle", "late"}},
		"project_id=demo":     {{"early", "middle", "late"}},
		"name=Middle&limit=1": {nil},
	} {
		var got [][]string
		for next := "/v1/groups?" + query; next != ""; {
			page := want[v1.Groups](t, c.demo.get(next), http.StatusOK)
			var names []string
			for _, g := range page.Groups {
				if names = append(names, g.Name); len(g.Reservations) != 2 {
					t.Errorf("%s has %d reservations", g.Name, len(g.Reservations))
				}
			}
			if got, next = append(got, names), ""; page.Next != "" {
				next = "/v1/groups?" + query + "&marker=" + string(page.Next)
			}
		}
		if diff := gocmp.Diff(names, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	if got := want[v1.Groups](t, c.other.get("/v1/groups"), http.StatusOK).Groups; len(got) != 0 {
		t.Errorf("another project sees %+v", got)
	}
	for query, field := range map[string]string{"marker=nobody": "marker", "limit=51": "limit", "status=active": "status"} {
		if e := wantError(t, c.demo.get("/v1/groups?"+query), http.StatusBadRequest); e.Field != field || strings.Contains(e.Message, "lease") {
			t.Errorf("%s: %+v", query, e)
		}
	}
	if diff := gocmp.Diff([][]string{{"middle", "middle"}}, c.demo.names("/v1/reservations?lease_id="+middle.ID)); diff != "" {
		t.Errorf("the reservations of a group (-want +got):\n%s", diff)
	}
	if got := c.other.names("/v1/reservations?lease_id=" + late.ID); len(got) != 1 || len(got[0]) != 0 {
		t.Errorf("another project sees %v", got)
	}
}

// A part changes and is canceled with its group, and the refusal names the command for that; what it has alone changes alone.
func TestARefusalOfAPartNamesTheCommandForItsGroup(t *testing.T) {
	c := start(t, setup{})
	g := c.demo.group(`{}, {}`)
	path := "/v1/reservations/" + g.Reservations[0].ID
	want[v1.Reservation](t, c.demo.send("PATCH", path, `{"name": "nodes", "quantity": 2}`), http.StatusOK)
	const why = `reservation "nodes" is one of the 2 parts of group "cluster", which begin, end and are canceled together; `
	for _, dry := range []string{"", "?dry_run=true"} {
		for _, body := range []string{fmt.Sprintf(`{"end_time": %q}`, at(9000)), `{"on_end": "stop"}`, `{"before_end": 60}`} {
			if e := wantError(t, c.demo.send("PATCH", path+dry, body), http.StatusConflict); e.Message != why+"change the group with 'almanac group change "+g.ID+"'" {
				t.Errorf("%s: %s", body, e.Message)
			}
		}
		if e := wantError(t, c.demo.send("DELETE", path+dry, ""), http.StatusConflict); e.Message != why+"delete the group with 'almanac group delete "+g.ID+"'" {
			t.Errorf("delete: %s", e.Message)
		}
	}
	c = start(t, setup{})
	alone := c.demo.group(`{}`).Reservations[0].ID
	want[v1.CancellationAnswer](t, c.demo.send("DELETE", "/v1/reservations/"+alone+"?dry_run=true", ""), http.StatusOK)
	if a := c.demo.send("DELETE", "/v1/reservations/"+alone, ""); a.status != http.StatusNoContent {
		t.Errorf("delete the only part: %v", a)
	}
}

func TestARefusalOfAGroupNamesThePartThatCannotBeHad(t *testing.T) {
	c := start(t, setup{})
	for parts, says := range map[string]string{
		`{}, {"quantity": {"min": 3, "max": 4}}`:                                "part 2 of 2 (3 to 4 hosts): not enough hosts available",
		`{"kind": "instance", "quantity": 200, "resources": {"vcpus": 16}}, {}`: "part 1 of 2 (200 instances): ",
	} {
		for _, dry := range []string{"", "?dry_run=true"} {
			refused := want[v1.ErrorAnswer](t, c.demo.post("/v1/groups"+dry, groupOf(parts)), http.StatusConflict)
			if refused.Refusal == nil || !strings.HasPrefix(refused.Error.Message, says) || strings.Contains(refused.Error.Message, "lease") {
				t.Errorf("%s: %+v", parts, refused)
			}
		}
	}
	g := c.demo.group(`{}, {"quantity": 2}`)
	shown := want[v1.Group](t, c.admin.get("/v1/groups/"+g.ID), http.StatusOK).Reservations[1].Hosts
	other := fmt.Sprintf(`{"name": "next", "start_time": %q, "duration": "1h", "host_properties": ["=", "$name", %q]}`, at(7200), shown[0])
	want[v1.Reservation](t, c.demo.post("/v1/reservations", other), http.StatusCreated)
	says := fmt.Sprintf("part 2 of 2 (2 hosts, reservation %s): not enough hosts available", g.Reservations[1].ID)
	refused := want[v1.ErrorAnswer](t, c.demo.send("PATCH", "/v1/groups/"+g.ID, fmt.Sprintf(`{"end_time": %q}`, at(9000))), http.StatusConflict)
	if refused.Refusal == nil || !strings.HasPrefix(refused.Error.Message, says) {
		t.Errorf("the change: %+v, want %s", refused, says)
	}
}

func TestTheReservationsOfAGroupDoNotBlockItsChange(t *testing.T) {
	c := start(t, setup{})
	const half = `"kind": "instance", "resources": {"vcpus": %d}, "host_properties": ["=", "$name", "A"]`
	size := want[v1.Host](t, c.admin.get("/v1/hosts/A"), http.StatusOK).Resources.VCPUs / 2
	part := fmt.Sprintf(half, size)
	g := c.demo.group(`{` + part + `}, {"host_properties": ["=", "$name", "B"]}`)
	for _, from := range []int64{5400, 7200} {
		c.demo.book(fmt.Sprintf(`{"name": "other", "start_time": %q, "end_time": %q, %s}`, at(from), at(10800), part))
	}
	refused := want[v1.ErrorAnswer](t, c.admin.send("PATCH", "/v1/groups/"+g.ID, fmt.Sprintf(`{"end_time": %q}`, at(9000))), http.StatusConflict)
	named := 0
	for _, b := range refused.Refusal.BlockedBy {
		for _, r := range b.Reservations {
			if named++; r.Name != "other" {
				t.Errorf("%s blocks the change of its own group: %+v", r.ID, b)
			}
		}
	}
	if named < 2 {
		t.Errorf("the refusal is %+v", refused.Refusal)
	}
}

func TestARefusedTimeOfAGroupNamesTheFieldThatWasSent(t *testing.T) {
	c := start(t, setup{})
	g := c.demo.group(`{}, {}`)
	for body, says := range map[string][2]string{
		fmt.Sprintf(`{"start_time": %q}`, at(7200)):                           {"start_time", "is not before the end of the group"},
		fmt.Sprintf(`{"start_time": %q}`, at(-3600)):                          {"start_time", "lies in the past"},
		fmt.Sprintf(`{"end_time": %q}`, at(3600)):                             {"end_time", "is not after the start"},
		fmt.Sprintf(`{"end_time": %q}`, at(-3600)):                            {"end_time", "delete the group to end it now"},
		fmt.Sprintf(`{"start_time": %q, "end_time": %q}`, at(9000), at(8000)): {"end_time", "is not after the start"},
		`{"before_end": -1}`:                                                  {"before_end", "negative"},
		`{"on_end": "burn"}`:                                                  {"on_end", "burn"},
	} {
		for _, dry := range []string{"", "?dry_run=true"} {
			if e := wantError(t, c.demo.send("PATCH", "/v1/groups/"+g.ID+dry, body), http.StatusBadRequest); e.Field != says[0] || !strings.Contains(e.Message, says[1]) || strings.Contains(e.Message, "lease") {
				t.Errorf("%s: %+v", body, e)
			}
		}
	}
}

func TestAGroupChangesWhatHappensAtItsEnd(t *testing.T) {
	c := start(t, setup{})
	g := c.demo.group(`{}, {"kind": "instance", "resources": {"vcpus": 1}}`)
	for _, change := range []struct {
		body      string
		onEnd     string
		beforeEnd v1.Duration
	}{
		{`{"on_end": "stop", "before_end": "10m"}`, "stop", 600},
		{fmt.Sprintf(`{"end_time": %q, "before_end": "20m"}`, at(10800)), "stop", 1200},
		{fmt.Sprintf(`{"end_time": %q}`, at(9000)), "stop", 1200},
		{`{"before_end": 0}`, "stop", 0},
		{`{"before_end": "3d", "on_end": "leave"}`, "leave", 5400}, // at the start at the earliest
	} {
		changed := want[v1.Group](t, c.demo.send("PATCH", "/v1/groups/"+g.ID, change.body), http.StatusOK)
		for _, r := range changed.Reservations {
			if r.OnEnd != change.onEnd || r.BeforeEnd != change.beforeEnd {
				t.Errorf("%s: on_end %s and before_end %d, want %+v", change.body, r.OnEnd, r.BeforeEnd, change)
			}
		}
	}
}

func TestAGroupIsALeaseInBlazarsForm(t *testing.T) {
	c := start(t, setup{})
	g := c.demo.group(`{"host_properties": ["=", "$name", "B"]}, {"kind": "instance", "quantity": 2, "resources": {"vcpus": 1}}`)
	lease := want[struct {
		Lease struct {
			Name         string
			Reservations []struct {
				ID         string
				Properties string `json:"resource_properties"`
			}
		}
	}](t, c.demo.get("/v1/leases/"+g.ID), http.StatusOK).Lease
	if lease.Name != "cluster" || len(lease.Reservations) != 2 || lease.Reservations[0].ID != g.Reservations[0].ID || lease.Reservations[0].Properties != `["=", "$name", "B"]` {
		t.Errorf("the lease is %+v, the group %+v", lease, g)
	}
}

func TestAGroupWithAnIdempotencyKeyIsRefusedAndNotBookedTwice(t *testing.T) {
	c := start(t, setup{})
	e := wantError(t, c.demo.send("POST", "/v1/groups", groupOf(`{}`), "Idempotency-Key", "k"), http.StatusBadRequest)
	if e.Field != "Idempotency-Key" {
		t.Errorf("the error is about %q: %s", e.Field, e.Message)
	}
	if got := want[v1.Reservations](t, c.demo.get("/v1/reservations"), http.StatusOK); len(got.Reservations) != 0 {
		t.Errorf("booked: %+v", got)
	}
}

func TestAWrongGroupIsToldItsField(t *testing.T) {
	c := start(t, setup{})
	for name, m := range map[string]mistake{
		"no parts":             {`{"name": "g", "duration": 60}`, "parts", "is required", false},
		"empty parts":          {`{"name": "g", "duration": 60, "parts": []}`, "parts", "is required", false},
		"no times":             {`{"name": "g", "parts": [{}]}`, "duration", "is required unless end_time is given", false},
		"no name":              {`{"duration": 60, "parts": [{}]}`, "name", "is required", false},
		"an unknown field":     {`{"name": "g", "duration": 60, "parts": [{}, {"quanity": 2}]}`, "parts[1].quanity", `did you mean "quantity"?`, false},
		"a filter":             {`{"name": "g", "duration": 60, "parts": [{}, {"host_properties": ["=="]}]}`, "parts[1].host_properties", "==", false},
		"no size":              {`{"name": "g", "duration": 60, "parts": [{"kind": "instance"}]}`, "parts[0].resources", "is required for kind instance", true},
		"a quantity of none":   {`{"name": "g", "duration": 60, "parts": [{"quantity": 0}]}`, "parts[0].quantity", "must be at least 1", false},
		"floating IPs":         {`{"name": "g", "duration": 60, "parts": [{"kind": "address"}]}`, "parts[0].kind", "there is no kind", false},
		"an end of the past":   {fmt.Sprintf(`{"name": "g", "end_time": %q, "parts": [{}]}`, at(-600)), "end_time", "is not after the start", true},
		"a start of the past":  {fmt.Sprintf(`{"name": "g", "start_time": %q, "duration": "2h", "parts": [{}]}`, at(-600)), "start_time", "lies in the past", true},
		"longer than a window": {fmt.Sprintf(`{"name": "g", "end_time": %q, "duration": "2h", "parts": [{}]}`, at(600)), "end_time", "is less than", true},
		"an action at the end": {`{"name": "g", "duration": 60, "on_end": "burn", "parts": [{}]}`, "on_end", "burn", false},
	} {
		t.Run(name, func(t *testing.T) { m.hold(t, c, "POST", "/v1/groups") })
	}
}
