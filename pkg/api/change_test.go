// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

func TestAChangeChangesWhatItNames(t *testing.T) {
	for name, test := range map[string]struct {
		change     string
		want       func(*v1.Reservation)
		wantDetail string
	}{
		"rename": {`{"name": "course"}`, func(r *v1.Reservation) { r.Name = "course" }, `name from "training" to "course"`},
		"extend": {
			fmt.Sprintf(`{"end_time": %q}`, at(10000)), func(r *v1.Reservation) { r.End = noon.Add(10000).Time() },
			fmt.Sprintf("end from %s to %s", at(7200), at(10000)),
		},
		"shorten": {
			fmt.Sprintf(`{"end_time": %q}`, at(5000)), func(r *v1.Reservation) { r.End = noon.Add(5000).Time() },
			fmt.Sprintf("end from %s to %s", at(7200), at(5000)),
		},
		"grow": {
			`{"quantity": 3}`, func(r *v1.Reservation) { r.Quantity, r.Hosts = 3, []string{"A", "B", "C"} },
			"quantity from 2 to 3",
		},
		"shrink": {
			`{"quantity": 1}`, func(r *v1.Reservation) { r.Quantity, r.Hosts = 1, []string{"A"} },
			"quantity from 2 to 1",
		},
		"move": {
			fmt.Sprintf(`{"start_time": %q, "end_time": %q, "name": null}`, at(90000), at(93600)),
			func(r *v1.Reservation) { r.Start, r.End = noon.Add(90000).Time(), noon.Add(93600).Time() },
			fmt.Sprintf("start from %s to %s, end from %s to %s", at(3600), at(90000), at(7200), at(93600)),
		},
		"filter": {
			`{"host_properties": ["!=", "$name", "A"]}`,
			func(r *v1.Reservation) {
				r.HostProperties, r.Hosts = json.RawMessage(`["!=","$name","A"]`), []string{"B", "C"}
			},
			`host_properties from "" to "[\"!=\", \"$name\", \"A\"]"`,
		},
		"what happens at the end": {`{"on_end": "shelve"}`, func(r *v1.Reservation) { r.OnEnd = "shelve" }, "on_end from delete to shelve"},
		"warning":                 {`{"before_end": "10m"}`, func(r *v1.Reservation) { r.BeforeEnd = 600 }, "before_end from 1800s to 600s"},
		"all at once": {
			fmt.Sprintf(`{"name": "night run", "quantity": 1, "start_time": %q, "end_time": %q}`, at(60), at(120)),
			func(r *v1.Reservation) {
				r.Name, r.Quantity, r.Hosts = "night run", 1, []string{"A"}
				r.Start, r.End = noon.Add(60).Time(), noon.Add(120).Time()
			},
			fmt.Sprintf(`name from "training" to "night run", quantity from 2 to 1, start from %s to %s, end from %s to %s`, at(3600), at(60), at(7200), at(120)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, setup{})
			r := c.admin.book(fmt.Sprintf(`{"name": "training", "quantity": 2, "start_time": %q, "duration": 3600}`, at(3600)))
			path := "/v1/reservations/" + r.ID
			c.seconds.Add(30)
			offer := want[v1.OfferAnswer](t, c.admin.patch(path+"?dry_run=true", test.change), http.StatusOK).Offer
			if diff := cmp.Diff(r, want[v1.Reservation](t, c.admin.get(path), http.StatusOK)); diff != "" {
				t.Errorf("the dry run changed it (-before +after):\n%s", diff)
			}
			got := want[v1.Reservation](t, c.admin.patch(path, test.change), http.StatusOK)
			test.want(&r)
			r.UpdatedAt = noon.Add(30).Time()
			if diff := cmp.Diff(r, got, cmpopts.IgnoreFields(v1.Reservation{}, "Events")); diff != "" {
				t.Errorf("reservation (-want +got):\n%s", diff)
			}
			if !offer.Start.Equal(got.Start) || !offer.End.Equal(got.End) || offer.Quantity != got.Quantity || !cmp.Equal(offer.Hosts, got.Hosts) {
				t.Errorf("offered %+v, done %+v", offer, got)
			}
			if last := lastDone(got.Events); last.Type != "changed" || last.Detail != test.wantDetail {
				t.Errorf("the log has %+v, want %q", last, test.wantDetail)
			}
			if diff := cmp.Diff(got, want[v1.Reservation](t, c.admin.get(path), http.StatusOK)); diff != "" {
				t.Errorf("shown otherwise than answered (-answered +shown):\n%s", diff)
			}
		})
	}
}

// Each field of a request can be changed, or its refusal says what to do instead.
func TestEachFieldOfARequestCanBeChangedOrIsRefusedWithWhatToDo(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(`{"name": "r", "duration": 3600}`)
	path, before := "/v1/reservations/"+r.ID, c.stored()
	instead := map[string]string{
		"kind": "cancel the reservation and book", "policy": "move the reservation with start_time", "duration": "send the new end_time",
		"flavor": "send the new resources", "image": "book another reservation", "together": "book another reservation", "maintenance": "book another reservation",
		"hosts": "choose other hosts with host_properties", "wait_until": "cancel the reservation and ask for it again",
	}
	changeable := map[string]bool{}
	for field := range reflect.TypeFor[v1.ReservationChange]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		changeable[name] = true
	}
	for field := range reflect.TypeFor[v1.ReservationRequest]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if changeable[name] == (instead[name] != "") {
			t.Errorf("%s can be changed: %v; instead: %q", name, changeable[name], instead[name])
		}
		if changeable[name] {
			continue
		}
		e := wantError(t, c.demo.patch(path, fmt.Sprintf(`{"name": "other", %q: null}`, name)), http.StatusBadRequest)
		if e.Field != name || !strings.Contains(e.Message, instead[name]) {
			t.Errorf("%s: %+v, want %q", name, e, instead[name])
		}
	}
	if e := wantError(t, c.demo.patch(path, `{"host_propertys": ""}`), http.StatusBadRequest); !strings.Contains(e.Message, `did you mean "host_properties"?`) {
		t.Errorf("another field: %+v", e)
	}
	if diff := cmp.Diff(before, c.stored()); diff != "" {
		t.Errorf("something was stored:\n%s", diff)
	}
}

// The owner of an active reservation sees its hosts, and reads which of them do not pass a new filter.
func TestAnActiveReservationIsRefusedAFilterThatItsHostsDoNotPass(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(`{"name": "r", "quantity": 2, "duration": 3600, "host_properties": [">=", "$vcpus", 1]}`)
	c.wait(60)
	path := "/v1/reservations/" + r.ID
	for _, query := range []string{"", "?dry_run=true"} {
		got := want[v1.ErrorAnswer](t, c.demo.patch(path+query, `{"host_properties": ["!=", "$name", "B"]}`), http.StatusConflict)
		if got.Refusal.Constraint != "host_properties" || got.Error.Message != "an active reservation keeps its hosts, and B does not pass host_properties" || got.Refusal.LargestQuantity != 1 {
			t.Errorf("got %+v: %+v", got.Error, got.Refusal)
		}
	}
	got := want[v1.Reservation](t, c.demo.patch(path, `{"host_properties": ["in", "$name", "A", "B"]}`), http.StatusOK)
	if string(got.HostProperties) != `["in","$name","A","B"]` || !cmp.Equal(got.Hosts, []string{"A", "B"}) {
		t.Errorf("got %+v", got)
	}
	if got = want[v1.Reservation](t, c.demo.patch(path, `{"host_properties": null}`), http.StatusOK); got.HostProperties == nil {
		t.Error("null removes the filter")
	}
	if got = want[v1.Reservation](t, c.demo.patch(path, `{"host_properties": ""}`), http.StatusOK); got.HostProperties != nil {
		t.Errorf("an empty text leaves the filter %s", got.HostProperties)
	}
}

// Blazar's clients see what the native API has changed.
func TestBlazarsFormShowsANewFilterAndANewWarning(t *testing.T) {
	c := start(t, setup{})
	l := leaseIn(t, c.demo.post("/v1/leases", `{"name": "l", "start_date": "2026-11-20 12:10", "end_date": "2026-11-20 13:10", "reservations": [
		{"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "[\"==\", \"$vcpus\", \"8\"]", "resource_properties": ""}]}`), http.StatusCreated)
	id := c.object("/v1/leases/"+l.ID, "lease")["reservations"].([]any)[0].(map[string]any)["id"].(string)
	want[v1.Reservation](t, c.demo.patch("/v1/reservations/"+id, `{"host_properties": ["=", "$name", "B"], "before_end": 600, "on_end": "shelve"}`), http.StatusOK)
	lease := c.object("/v1/leases/"+l.ID, "lease")
	member := lease["reservations"].([]any)[0].(map[string]any)
	if member["hypervisor_properties"] != "" || member["resource_properties"] != `["=", "$name", "B"]` || member["on_end"] != "shelve" {
		t.Errorf("the reservation is %v", member)
	}
	if fields := leaseFields(t, c, lease); fields["before_end_date"] != "2026-11-20T13:00:00.000000" {
		t.Errorf("the lease has %v", fields)
	}
}

func TestARefusedChangeLeavesEverythingAsItWas(t *testing.T) {
	c := start(t, setup{limits: planning.Limits{Duration: 86400}})
	r := c.demo.book(fmt.Sprintf(`{"name": "r", "quantity": 2, "start_time": %q, "duration": 3600}`, at(3600)))
	c.other.book(fmt.Sprintf(`{"name": "r", "quantity": 2, "start_time": %q, "duration": 3600}`, at(7200)))
	path, before := "/v1/reservations/"+r.ID, c.stored()
	for change, constraint := range map[string]string{
		fmt.Sprintf(`{"end_time": %q}`, at(7201)):         "free_hosts",
		`{"quantity": 4}`:                                 "pool",
		fmt.Sprintf(`{"start_time": %q}`, at(3600-86400)): "",
		fmt.Sprintf(`{"end_time": %q}`, at(3601+86400)):   "max_duration",
	} {
		if constraint == "" {
			wantError(t, c.demo.patch(path, change), http.StatusBadRequest)
		} else if got := want[v1.ErrorAnswer](t, c.demo.patch(path, change), http.StatusConflict); got.Refusal.Constraint != constraint {
			t.Errorf("%s: got %+v, want %s", change, got, constraint)
		}
		if diff := cmp.Diff(before, c.stored()); diff != "" {
			t.Errorf("%s changed something:\n%s", change, diff)
		}
	}
	grown := want[v1.ErrorAnswer](t, c.demo.patch(path, `{"quantity": 4}`), http.StatusConflict).Refusal
	if got := want[v1.Reservation](t, c.demo.patch(path, fmt.Sprintf(`{"quantity": %d}`, grown.LargestQuantity)), http.StatusOK); got.Quantity != 3 {
		t.Errorf("the largest quantity is %d, want 3", grown.LargestQuantity)
	}
}

func TestAPendingReservationMovesAwayFromThoseWhoComeAfterIt(t *testing.T) {
	c := start(t, setup{})
	r := c.admin.book(fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 3600}`, at(3600)))
	c.admin.book(fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 3600, "host_properties": ["=", "$name", "A"]}`, at(7200)))
	longer := want[v1.Reservation](t, c.admin.patch("/v1/reservations/"+r.ID, fmt.Sprintf(`{"end_time": %q}`, at(7800))), http.StatusOK)
	if !cmp.Equal(r.Hosts, []string{"A"}) || !cmp.Equal(longer.Hosts, []string{"B"}) {
		t.Errorf("from %v to %v, want from A to B", r.Hosts, longer.Hosts)
	}
}

func TestAnActiveReservationKeepsItsStartAndItsHosts(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(`{"name": "r", "quantity": 2, "duration": 3600}`)
	c.wait(60)
	path := "/v1/reservations/" + r.ID
	wantError(t, c.demo.patch(path, fmt.Sprintf(`{"start_time": %q}`, at(120))), http.StatusConflict)
	if e := wantError(t, c.demo.patch(path, fmt.Sprintf(`{"end_time": %q}`, at(60))), http.StatusBadRequest); e.Field != "end_time" {
		t.Errorf("an end that is now is wrong in %q", e.Field)
	}
	got := want[v1.Reservation](t, c.demo.patch(path, fmt.Sprintf(`{"quantity": 3, "end_time": %q}`, at(7200))), http.StatusOK)
	if !cmp.Equal(got.Hosts, []string{"A", "B", "C"}) || got.Start != r.Start || got.End != noon.Add(7200).Time() || got.Status != "active" {
		t.Errorf("got %+v", got)
	}
}

func TestWhatIsOverCannotBeChanged(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(`{"name": "r", "duration": 60}`)
	c.wait(60)
	path := "/v1/reservations/" + r.ID
	if e := wantError(t, c.demo.patch(path, `{"name": "late"}`), http.StatusConflict); e.Kind != "conflict" {
		t.Errorf("got %+v", e)
	}
	wantError(t, c.demo.delete(path), http.StatusConflict)
	if got := want[v1.Reservation](t, c.demo.get(path), http.StatusOK); got.Status != "ended" {
		t.Errorf("the status is %s, want ended", got.Status)
	}
}

func TestADeletedReservationIsOverAndStaysReadable(t *testing.T) {
	c := start(t, setup{})
	body := `{"name": "r", "quantity": 3, "duration": 3600}`
	r := c.demo.book(body)
	path := "/v1/reservations/" + r.ID
	want[v1.ErrorAnswer](t, c.other.post("/v1/reservations", body), http.StatusConflict)
	if a := c.demo.delete(path); a.status != http.StatusNoContent || len(a.body) != 0 {
		t.Errorf("got %v, want 204 and nothing", a)
	}
	got := want[v1.Reservation](t, c.demo.get(path), http.StatusOK)
	if last := got.Events[len(got.Events)-1]; got.Status != "canceled" || last.Type != "canceled" || last.State != "done" {
		t.Errorf("GET shows %+v", got)
	}
	wantError(t, c.other.get(path), http.StatusNotFound)
	for name, a := range map[string]answer{
		"delete": c.demo.delete(path), "change": c.demo.patch(path, `{"name": "again"}`), "offer": c.demo.patch(path+"?dry_run=true", `{"name": "again"}`),
	} {
		if e := wantError(t, a, http.StatusConflict); e.Kind != "conflict" || e.Message != "the reservation is canceled" {
			t.Errorf("%s again: %+v", name, e)
		}
	}
	if listed := want[v1.Reservations](t, c.demo.get("/v1/reservations"), http.StatusOK).Reservations; len(listed) != 0 {
		t.Errorf("listed without a request for them: %+v", listed)
	}
	c.other.book(body)
}

func TestDeletingAnActiveReservationFreesTheRest(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(`{"name": "r", "quantity": 3, "duration": 3600}`)
	c.wait(600)
	if a := c.demo.delete("/v1/reservations/" + r.ID); a.status != http.StatusNoContent {
		t.Fatalf("got %v", a)
	}
	if next := c.other.book(`{"name": "r", "quantity": 3, "duration": 60}`); next.Start != noon.Add(600).Time() {
		t.Errorf("the next begins at %v", next.Start)
	}
	kept := want[v1.Reservations](t, c.demo.get("/v1/reservations?status=canceled"), http.StatusOK).Reservations
	if len(kept) != 1 || kept[0].Events[len(kept[0].Events)-1].Type != "canceled" {
		t.Errorf("the log keeps %+v", kept)
	}
}

// lastDone returns the last event of the log that is done.
func lastDone(log []v1.Event) v1.Event {
	done := v1.Event{}
	for _, e := range log {
		if e.State == "done" {
			done = e
		}
	}
	return done
}

func TestTheIdInAPathMayBeInAnyCase(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(`{"name": "r", "duration": 3600}`)
	path := "/v1/reservations/" + strings.ToUpper(r.ID)
	if got := want[v1.Reservation](t, c.demo.get(path), http.StatusOK); got.ID != r.ID {
		t.Errorf("GET shows %s, want %s", got.ID, r.ID)
	}
	if got := want[v1.Reservation](t, c.demo.patch(path, `{"name": "course"}`), http.StatusOK); got.ID != r.ID || got.Name != "course" {
		t.Errorf("PATCH shows %s named %q, want %s", got.ID, got.Name, r.ID)
	}
	if a := c.demo.send("DELETE", path, ""); a.status != http.StatusNoContent {
		t.Errorf("DELETE: %v", a)
	}
}

func TestARefusedExtensionNamesTheLatestEnd(t *testing.T) {
	c := start(t, setup{})
	ours := c.demo.book(`{"name": "ours", "duration": 3600, "host_properties": ["=", "$name", "B"]}`)
	c.other.book(fmt.Sprintf(`{"name": "theirs", "start_time": %q, "duration": 3600, "host_properties": ["=", "$name", "B"]}`, at(7200)))
	c.wait(0)
	path := "/v1/reservations/" + ours.ID
	got := want[v1.ErrorAnswer](t, c.demo.patch(path, fmt.Sprintf(`{"end_time": %q}`, at(9000))), http.StatusConflict)
	if got.Error.Field != "end_time" || got.Refusal.LatestEnd == nil || !got.Refusal.LatestEnd.Equal(noon.Add(7200).Time()) {
		t.Errorf("got %+v and %+v, want the field end_time and the latest end %v", got.Error, got.Refusal, at(7200))
	}
	extended := want[v1.Reservation](t, c.demo.patch(path, fmt.Sprintf(`{"end_time": %q}`, at(7200))), http.StatusOK)
	if !extended.End.Equal(noon.Add(7200).Time()) {
		t.Errorf("the latest end leads to %v", extended.End)
	}
	if got := want[v1.ErrorAnswer](t, c.demo.patch(path, fmt.Sprintf(`{"end_time": %q}`, at(9000))), http.StatusConflict); got.Refusal.LatestEnd != nil {
		t.Errorf("the latest end %v lies after the next reservation", got.Refusal.LatestEnd)
	}
}

// What a change leaves as it is matches as many hosts as before.
func TestAnOfferOfAChangeCountsTheHostsThatMatch(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.bookAt("r", 3600)
	for _, body := range []string{`{}`, `{"name": "another"}`, fmt.Sprintf(`{"quantity": %d}`, r.Quantity), `{"quantity": 1}`, `{"quantity": 3}`} {
		o := want[v1.OfferAnswer](t, c.demo.send("PATCH", "/v1/reservations/"+r.ID+"?dry_run=true", body), http.StatusOK).Offer
		if o.Matched != 3 {
			t.Errorf("%s: %d hosts match, want 3", body, o.Matched)
		}
	}
}

// The hosts of an active reservation are final, and its project sees them.
func TestAnOfferOfAChangeOfAnActiveReservationNamesItsHosts(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.bookAt("r", 3600)
	offered := func() []string {
		return want[v1.OfferAnswer](t, c.demo.send("PATCH", "/v1/reservations/"+r.ID+"?dry_run=true", `{"quantity": 1}`), http.StatusOK).Offer.Hosts
	}
	if hosts := offered(); len(hosts) != 0 {
		t.Errorf("pending: %v", hosts)
	}
	c.wait(3600)
	if hosts := offered(); len(hosts) != 1 {
		t.Errorf("active: %v, want the host that stays", hosts)
	}
}
