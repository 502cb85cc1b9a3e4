// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// untagged has the calls that change or remove something without a tag, and why.
var untagged = map[string]string{
	"DELETE /dashboard/session":           "a session has nothing that could be changed",
	"PATCH /dashboard/session":            "a session is its owner's alone, and the new project replaces the old one whatever that was",
	"DELETE /v1/demo/servers/:id":         "a server of a simulated cloud is never changed",
	"DELETE /v1/packing/runs/:id":         "a run can only be stopped, and stopping it twice is stopping it",
	"DELETE /v1/floatingips/:id":          "an address of the pool is never changed",
	"DELETE /v1/webhooks/:id":             "a webhook is never changed",
	"DELETE /v1/besteffort/:id":           "a request can only be canceled, and canceling it twice is canceling it",
	"PATCH /v1/properties/:name":          "a property is hidden or not, so that a change writes over nothing else; and no answer shows one alone",
	"PATCH /v1/os-hosts/properties/:name": "a property is hidden or not, so that a change writes over nothing else; and no answer shows one alone",
}

func changes(method string) bool {
	return slices.Contains([]string{http.MethodPatch, http.MethodPut, http.MethodDelete}, method)
}

func TestEachCallThatChangesSomethingTakesTagsOrHasItsReason(t *testing.T) {
	reasons := make(map[string]bool)
	for _, r := range table() {
		call := r.Method + " " + r.Path
		_, reason := untagged[call]
		if reasons[call] = reason; changes(r.Method) && r.Tag == reason {
			t.Errorf("%s takes tags: %v, has a reason not to: %v", call, r.Tag, reason)
		}
	}
	for call := range untagged {
		if !reasons[call] {
			t.Errorf("%s has a reason, but is no call", call)
		}
	}
}

// TestTheDocumentHasTheTagsOfTheTable compares the column with what the document lists of a call.
func TestTheDocumentHasTheTagsOfTheTable(t *testing.T) {
	contract := openContract(t)
	for _, r := range table() {
		var operation *openapi3.Operation
		for _, document := range []*openapi3.T{contract.document, contract.blazar} {
			if item := document.Paths.Value(asDocumented(r.Path)); item != nil && item.GetOperation(r.Method) != nil {
				operation = item.GetOperation(r.Method)
			}
		}
		if operation == nil {
			continue // another test tells
		}
		call := r.Method + " " + r.Path
		takes := func(header string) bool { return operation.Parameters.GetByInAndName("header", header) != nil }
		answers := func(status int) bool { return operation.Responses.Status(status) != nil }
		if want := r.Tag && changes(r.Method); takes("If-Match") != want || answers(http.StatusPreconditionFailed) != want {
			t.Errorf("%s takes tags: %v; the document has If-Match: %v, and 412: %v", call, want, takes("If-Match"), answers(http.StatusPreconditionFailed))
		}
		if want := r.Tag && r.Method == http.MethodGet; want && !(takes("If-None-Match") && answers(http.StatusNotModified)) {
			t.Errorf("%s has a tag; the document has If-None-Match: %v, and 304: %v", call, takes("If-None-Match"), answers(http.StatusNotModified))
		}
		status := map[string]int{http.MethodPost: http.StatusCreated, http.MethodDelete: 0}[r.Method]
		if r.Method != http.MethodPost && r.Method != http.MethodDelete {
			status = http.StatusOK
		}
		if r.Tag && status != 0 && operation.Responses.Status(status).Value.Headers["ETag"] == nil {
			t.Errorf("%s: the document has no ETag in the answer %d", call, status)
		}
	}
}

// taggedObject is one thing whose answers have tags.
type taggedObject struct {
	path string
	by   caller
	// change is the body of a change, with a number, and removes is true if it can be deleted.
	method, change string
	removes        bool
}

// body returns the body of a change; two with different numbers make two things of it.
func (o taggedObject) body(number int) string { return fmt.Sprintf(o.change, number) }

// taggedObjects makes one object of each kind.
func taggedObjects(c *cloud) map[string]taggedObject {
	c.t.Helper()
	booked := func(name string) string { return c.demo.book(fmt.Sprintf(`{"name": %q, "duration": 3600}`, name)).ID }
	lease := func() string {
		return want[struct{ Lease struct{ ID string } }](c.t, c.demo.post("/v1/leases", `{"name": "l", "start_date": "2026-11-21 10:00", "end_date": "2026-11-21 13:00",
			"reservations": [{"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": ""}]}`), http.StatusCreated).Lease.ID
	}
	return map[string]taggedObject{
		"a reservation":             {"/v1/reservations/" + booked("r"), c.demo, "PATCH", `{"name": "change %d"}`, true},
		"a lease":                   {"/v1/leases/" + lease(), c.demo, "PUT", `{"name": "change %d"}`, true},
		"a reservation, as a lease": {"/v1/leases/" + booked("s"), c.demo, "PATCH", `{"name": "change %d"}`, true},
		"a group":                   {"/v1/groups/" + c.demo.group(`{}`).ID, c.demo, "PATCH", `{"name": "change %d"}`, true},
		"a series":                  {"/v1/series/" + c.demo.series("").ID, c.demo, "PATCH", `{"name": "change %d"}`, true},
		"a host":                    {"/v1/hosts/B", c.admin, "PATCH", `{"properties": {"rack": %d}}`, false},
		"a host in Blazar's form":   {"/v1/os-hosts/3", c.admin, "PUT", `{"shelf": "%d"}`, true},
		"the energy controller":     {"/v1/energy", c.admin, "PATCH", `{"mode": "observe", "reason": "change %d"}`, false},
	}
}

// eachTagged runs a test with each object that has tags, in a cloud of its own.
func eachTagged(t *testing.T, test func(t *testing.T, c *cloud, o taggedObject)) {
	for name := range taggedObjects(start(t, setup{})) {
		t.Run(name, func(t *testing.T) {
			c := start(t, setup{})
			test(t, c, taggedObjects(c)[name])
		})
	}
}

// tag returns the tag of the answer that shows an object.
func (o taggedObject) tag(t *testing.T) string {
	t.Helper()
	a := o.by.get(o.path)
	if a.status != http.StatusOK || a.header.Get("ETag") == "" {
		t.Fatalf("%v with the tag %q", a, a.header.Get("ETag"))
	}
	return a.header.Get("ETag")
}

func TestAnAnswerThatIsKnownIsNotSentAgain(t *testing.T) {
	eachTagged(t, func(t *testing.T, c *cloud, o taggedObject) {
		tag := o.tag(t)
		for _, known := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
			a := o.by.send("GET", o.path, "", "If-None-Match", known)
			if a.status != http.StatusNotModified || len(a.body) > 0 || a.header.Get("ETag") != tag || !strings.Contains(a.header.Get("Cache-Control"), "private") {
				t.Errorf("%s: %v with %v", known, a, a.header)
			}
		}
		changed := o.by.send(o.method, o.path, o.body(1))
		if a := o.by.send("GET", o.path, "", "If-None-Match", tag); a.status != http.StatusOK || a.header.Get("ETag") == tag {
			t.Errorf("after a change: %v with the tag %s, which was %s", a, a.header.Get("ETag"), tag)
		}
		if got, now := changed.header.Get("ETag"), o.tag(t); got != now {
			t.Errorf("the change has the tag %s, and the answer after it %s", got, now)
		}
	})
}

func TestOnlyWhatTheClientHasReadIsChanged(t *testing.T) {
	eachTagged(t, func(t *testing.T, c *cloud, o taggedObject) {
		first := o.tag(t)
		if a := o.by.send(o.method, o.path, o.body(1), "If-Match", first); a.status != http.StatusOK {
			t.Fatalf("a change of what was read: %v", a)
		}
		before := o.by.get(o.path)
		calls := [][2]string{{o.method, o.body(2)}, {"DELETE", ""}}
		for _, call := range calls[:map[bool]int{true: 2, false: 1}[o.removes]] {
			for _, tags := range []string{first, "W/" + first, `"0-0"`, `"", "x"`} {
				e := wantError(t, o.by.send(call[0], o.path, call[1], "If-Match", tags), http.StatusPreconditionFailed)
				if e.Kind != "precondition" || !strings.Contains(e.Message, "has changed since it was read") {
					t.Errorf("%s with %s: %+v", call[0], tags, e)
				}
			}
			for _, text := range []string{"", "1", `"1`, "*, *"} {
				if e := wantError(t, o.by.send(call[0], o.path, call[1], "If-Match", text), http.StatusBadRequest); e.Field != "If-Match" {
					t.Errorf("%s with %q: %+v", call[0], text, e)
				}
			}
		}
		if after := o.by.get(o.path); string(after.body) != string(before.body) {
			t.Errorf("it was %s and is %s", before.body, after.body)
		}
		now := strings.TrimSuffix(o.tag(t), `"`) + `-gzip"` // as Apache has it
		if a := o.by.send(o.method, o.path, o.body(2), "If-Match", `"x", W/`+now); a.status != http.StatusOK {
			t.Errorf("a change after reading again: %v", a)
		}
		if a := o.by.send(o.method, o.path, o.body(3), "If-Match", "*"); a.status != http.StatusOK {
			t.Errorf("a change of any version: %v", a)
		}
		if o.removes {
			if a := o.by.send("DELETE", o.path, "", "If-Match", o.tag(t)); a.status != http.StatusNoContent {
				t.Errorf("a deletion after reading again: %v", a)
			}
		}
	})
}

func TestAnOfferIsForWhatTheClientHasReadToo(t *testing.T) {
	c := start(t, setup{})
	path := "/v1/reservations/" + c.demo.book(`{"name": "r", "duration": 3600}`).ID
	tag := c.demo.get(path).header.Get("ETag")
	for _, call := range [][2]string{{"PATCH", `{"quantity": 2}`}, {"DELETE", ""}} {
		if a := c.demo.send(call[0], path+"?dry_run=true", call[1], "If-Match", tag); a.status != http.StatusOK || a.header.Get("ETag") != "" {
			t.Errorf("%s of what was read: %v with the tag %q", call[0], a, a.header.Get("ETag"))
		}
	}
	c.demo.patch(path, `{"name": "changed"}`)
	for _, call := range [][2]string{{"PATCH", `{"quantity": 2}`}, {"DELETE", ""}} {
		wantError(t, c.demo.send(call[0], path+"?dry_run=true", call[1], "If-Match", tag), http.StatusPreconditionFailed)
	}
}

func TestWhatSomebodyHasCanceledIsChangedNotOver(t *testing.T) {
	c := start(t, setup{})
	path := "/v1/reservations/" + c.demo.book(`{"name": "r", "duration": 3600}`).ID
	tag := c.demo.get(path).header.Get("ETag")
	c.demo.delete(path)
	wantError(t, c.demo.send("PATCH", path, `{"name": "x"}`, "If-Match", tag), http.StatusPreconditionFailed)
	wantError(t, c.demo.send("DELETE", path, "", "If-Match", tag), http.StatusPreconditionFailed)
	wantError(t, c.demo.send("DELETE", path, "", "If-Match", c.demo.get(path).header.Get("ETag")), http.StatusConflict)
}

// Callers who see different parts of a reservation have different tags of it, and either is right for a change.
func TestTheTagOfAnybodyWhoSeesItIsGoodForAChange(t *testing.T) {
	c := start(t, setup{})
	path := "/v1/reservations/" + c.demo.book(`{"name": "r", "start_time": "2026-11-21T10:00:00Z", "duration": 3600}`).ID
	member, admin := c.demo.get(path), c.admin.get(path)
	if string(member.body) == string(admin.body) || member.header.Get("ETag") == admin.header.Get("ETag") {
		t.Fatalf("%s with %s, %s with %s", member.body, member.header.Get("ETag"), admin.body, admin.header.Get("ETag"))
	}
	if a := c.demo.send("PATCH", path, `{"name": "x"}`, "If-Match", admin.header.Get("ETag")); a.status != http.StatusOK {
		t.Error(a)
	}
}

// Two clients that have read the same, each at a replica of its own, both change it: exactly one change is stored.
func TestOfTwoChangesOfTheSameVersionOneIsStored(t *testing.T) {
	for name, database := range map[string]func(t *testing.T) string{
		"SQLite":  func(*testing.T) string { return "" },
		"MariaDB": func(t *testing.T) string { return labtest.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			connection := database(t) // skips the test without a lab
			first := start(t, setup{connection: connection})
			second := start(t, setup{connection: connection, file: first.file})
			for what, o := range taggedObjects(first) {
				for round := range 5 {
					tag := o.tag(t)
					answers := make([]answer, 2)
					var clients sync.WaitGroup
					for i, c := range []*cloud{first, second} {
						at, body := caller{c, o.by.token}, o.body(10*round+i)
						clients.Go(func() { answers[i] = at.send(o.method, o.path, body, "If-Match", tag) })
					}
					clients.Wait()
					statuses := []int{answers[0].status, answers[1].status}
					if slices.Sort(statuses); !slices.Equal(statuses, []int{http.StatusOK, http.StatusPreconditionFailed}) {
						t.Errorf("%s, round %d: %v", what, round, answers)
					}
				}
			}
		})
	}
}
