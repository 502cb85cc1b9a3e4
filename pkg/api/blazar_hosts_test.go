// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// step is a request in Blazar's form, and what the answer must have.
type step struct {
	name               string
	method, path, body string
	status             int
	has                map[string]any // of the answer's one object or, with a number in front, of its list
}

// carryOut sends the requests one after the other.
func carryOut(t *testing.T, by caller, steps []step) {
	t.Helper()
	for _, s := range steps {
		name := s.method + " " + s.path + " " + s.body + " " + s.name
		a := by.send(s.method, s.path, s.body)
		if a.status != s.status {
			t.Fatalf("%s: want status %d, got %v", name, s.status, a)
		}
		if kind := a.header.Get("Content-Type"); len(a.body) > 0 && kind != "application/json" {
			t.Errorf("%s: Content-Type is %q", name, kind)
		}
		for path, want := range s.has {
			if got := part(t, a, path); !cmp.Equal(got, want) {
				t.Errorf("%s: %s is %v (%T), want %v; the answer is %s", name, path, got, got, want, a.body)
			}
		}
	}
}

// part returns the part of an answer at a path of keys and indices, joined by dots; "#" is the
// length of a list.
func part(t *testing.T, a answer, path string) (found any) {
	t.Helper()
	found = decode[any](t, a)
	for key := range strings.SplitSeq(path, ".") {
		switch inner := found.(type) {
		case map[string]any:
			value, there := inner[key]
			if !there {
				return "absent"
			}
			found = value
		case []any:
			if key == "#" {
				return len(inner)
			}
			i := 0
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(inner) {
				return "absent"
			}
			found = inner[i]
		default:
			return "absent"
		}
	}
	return found
}

// compute returns a host with a hypervisor that has another name.
func compute(name string) inventory.Host {
	h := machine(name)
	h.Zone, h.Hypervisor = "az1", inventory.Hypervisor{Name: name + ".example.org", Type: "QEMU", Version: 9002000}
	return h
}

func computes(names ...string) (hosts []inventory.Host) {
	for _, name := range names {
		hosts = append(hosts, compute(name))
	}
	return hosts
}

func TestAHostHasBlazarsColumnsAndItsProperties(t *testing.T) {
	hosts := computes("cmp-1")
	hosts[0].Properties = map[string]inventory.Value{
		"rack": inventory.NumberValue(4), "nvme": inventory.BoolValue(true), "networks": inventory.ListValue([]string{"ib", "eth"}), "status": inventory.StringValue("x"),
	}
	c := start(t, setup{hosts: hosts})
	a := c.reader.get("/v1/os-hosts/1")
	want := `{"host":{"availability_zone":"az1","cpu_info":"","created_at":null,"hypervisor_hostname":"cmp-1.example.org","hypervisor_type":"QEMU",` +
		`"hypervisor_version":9002000,"id":"1","local_gb":100,"memory_mb":32768,"networks":"[\"ib\",\"eth\"]","nvme":"True","rack":"4","reservable":true,` +
		`"service_name":"cmp-1","status":null,"trust_id":null,"updated_at":null,"vcpus":8}}` + "\n"
	if d := cmp.Diff(want, string(a.body)); d != "" {
		t.Errorf("the host (-want +got):\n%s", d)
	}
	if a := c.reader.get("/v1/os-hosts/cmp-1"); string(a.body) != want {
		t.Errorf("by its name: %v", a)
	}
}

// The requests that the openstack client, the dashboard and gophercloud were seen to send.
func TestTheClientsAddChangeAndRemoveHosts(t *testing.T) {
	c := start(t, setup{hosts: computes("cmp-1", "cmp-2"), enrolled: true})
	carryOut(t, c.admin, []step{
		{"no host is in the pool", "GET", "/v1/os-hosts", "", 200, map[string]any{"hosts.#": 0}},
		{"host create", "POST", "/v1/os-hosts", `{"name":"cmp-2","gpu":"a100","rack":"b12"}`, 201, map[string]any{
			"host.id": "2", "host.hypervisor_hostname": "cmp-2.example.org", "host.gpu": "a100", "host.rack": "b12", "host.reservable": true,
			"host.created_at": "2026-11-20 12:00:00", "host.updated_at": nil,
		}},
		{"by the name of the hypervisor, with a number and a truth value, as the dashboard sends them", "POST", "/v1/os-hosts",
			`{"name":"cmp-1.example.org","gpu":"a100","rack":4,"nvme":true,"size":1.50}`, 201,
			map[string]any{"host.id": "1", "host.rack": "4", "host.nvme": "True", "host.size": "1.50"}},
		{"host list", "GET", "/v1/os-hosts", "", 200, map[string]any{"hosts.#": 2, "hosts.0.id": "1", "hosts.0.vcpus": 8.0, "hosts.0.memory_mb": 32768.0, "hosts.0.local_gb": 100.0}},
		{"host set", "PUT", "/v1/os-hosts/1", `{"gpu":"h100"}`, 200, map[string]any{"host.gpu": "h100", "host.rack": "4", "host.updated_at": "2026-11-20 12:00:00"}},
		{"null removes a capability", "PUT", "/v1/os-hosts/1", `{"gpu":null}`, 200, map[string]any{"host.gpu": "absent", "host.rack": "4"}},
		{"host show", "GET", "/v1/os-hosts/1", "", 200, map[string]any{"host.gpu": "absent"}},
		{"columns are ignored", "PATCH", "/v1/os-hosts/1", `{"vcpus":99,"id":"7","name":"other","status":"up","trust_id":"x","reservable":false}`, 200,
			map[string]any{"host.vcpus": 8.0, "host.id": "1", "host.reservable": true, "host.name": "absent"}},
		{"nothing to change", "PUT", "/v1/os-hosts/1", `{}`, 400, map[string]any{"error_message": "No data to update", "error_code": 400.0, "error_name": 400.0}},
		{"host delete", "DELETE", "/v1/os-hosts/1", "", 204, nil},
		{"it is gone", "GET", "/v1/os-hosts/1", "", 404, map[string]any{"error_message": "Object with {'host': '1'} not found"}},
		{"for every call", "PUT", "/v1/os-hosts/1", `{"gpu":"x"}`, 404, nil},
		{"for every call", "DELETE", "/v1/os-hosts/1", "", 404, nil},
		{"for every call", "GET", "/v1/os-hosts/1/allocation", "", 404, nil},
		{"it comes back with its number and without capabilities", "POST", "/v1/os-hosts", `{"name":"cmp-1"}`, 201, map[string]any{"host.id": "1", "host.rack": "absent"}},
	})
}

func TestWhatIsWrongWithAHostIsAnError(t *testing.T) {
	long := strings.Repeat("é", 65)
	many := make(map[string]any)
	for i := range 257 {
		many[fmt.Sprint("key", i)] = "x"
	}
	most, _ := json.Marshal(many)
	delete(many, "key256")
	fits, _ := json.Marshal(many)
	c := start(t, setup{hosts: computes("cmp-1"), enrolled: true})
	text := func(status int, message string) map[string]any {
		return map[string]any{"error_message": message, "error_code": float64(status)}
	}
	carryOut(t, c.admin, []step{
		{"", "POST", "/v1/os-hosts", `{"name":"cmp-9"}`, 404, text(404, "Host 'cmp-9' not found!")},
		{"", "POST", "/v1/os-hosts", `{"gpu":"x"}`, 400, text(400, "Missing parameter name")},
		{"", "POST", "/v1/os-hosts", `{"name":7}`, 400, text(400, "Malformed parameter name")},
		{"", "POST", "/v1/os-hosts", `{"name":"cmp-1","` + long + `":"x"}`, 400, text(400, "Extra capability key too long")},
		{"", "POST", "/v1/os-hosts", `{"name":"cmp-1","gpu":"` + strings.Repeat("x", 1025) + `"}`, 400, nil},
		{"", "POST", "/v1/os-hosts", `{"name":"cmp-1","gpu":["a100"]}`, 400, text(400, "Malformed parameter gpu (must be a text, a number, true or false)")},
		{"", "POST", "/v1/os-hosts", `{"name":"cmp-1"," ":"x"}`, 400, nil},
		{"", "POST", "/v1/os-hosts", `{"name":"cmp-1","disk_gb":"x"}`, 400, nil},
		{"", "POST", "/v1/os-hosts", `[]`, 400, nil},
		{"no host stays behind", "GET", "/v1/os-hosts", "", 200, map[string]any{"hosts.#": 0}},
		{"", "POST", "/v1/os-hosts", `{"name":"cmp-1","` + long[2:] + `":"x"}`, 201, nil},
		{"it is in the pool already", "POST", "/v1/os-hosts", `{"name":"cmp-1"}`, 409, nil},
		{"too many at once", "PUT", "/v1/os-hosts/1", string(most), 400, nil},
		{"too many together", "PUT", "/v1/os-hosts/1", string(fits), 400, text(400, "Too many extra capabilities: a host may have 256")},
		{"", "PATCH", "/v1/os-hosts/properties/gpu", `{"private":true}`, 404, nil},
		{"", "PATCH", "/v1/os-hosts/properties/gpu", `{}`, 400, text(400, "Missing parameter private")},
	})
}

func TestWithTheWholeInventoryAsThePoolEveryHostIsListed(t *testing.T) {
	hosts := computes("cmp-1", "cmp-2")
	hosts[1].Reservable = false
	c := start(t, setup{hosts: hosts})
	carryOut(t, c.admin, []step{
		{"", "GET", "/v1/os-hosts", "", 200, map[string]any{"hosts.#": 2, "hosts.0.reservable": true, "hosts.1.reservable": false}},
		{"a known host", "POST", "/v1/os-hosts", `{"name":"cmp-1","gpu":"a100","none":null}`, 201, map[string]any{"host.gpu": "a100", "host.none": "absent"}},
		{"and again", "POST", "/v1/os-hosts", `{"name":"cmp-1","gpu":"h100"}`, 201, map[string]any{"host.gpu": "h100"}},
		{"a host outside the pool", "POST", "/v1/os-hosts", `{"id":"2"}`, 201, map[string]any{"host.id": "2", "host.reservable": true}},
		{"", "DELETE", "/v1/os-hosts/1", "", 204, nil},
		{"", "GET", "/v1/os-hosts/1", "", 200, map[string]any{"host.reservable": false, "host.gpu": "absent"}},
	})
}

func TestReadersReadAndAdminsWriteHosts(t *testing.T) {
	c := start(t, setup{hosts: computes("cmp-1")})
	for _, path := range []string{"/v1/os-hosts", "/v1/os-hosts/1", "/v1/os-hosts/allocations", "/v1/os-hosts/1/allocation", "/v1/os-hosts/properties"} {
		carryOut(t, c.reader, []step{{"", "GET", path, "", 200, nil}})
		carryOut(t, c.nobody, []step{{"", "GET", path, "", 401, nil}})
	}
	for _, s := range []struct{ method, path, body, rule string }{
		{"POST", "/v1/os-hosts", `{"name":"cmp-1"}`, "post"}, {"PUT", "/v1/os-hosts/1", `{"gpu":"x"}`, "put"}, {"PATCH", "/v1/os-hosts/1", `{"gpu":"x"}`, "put"},
		{"DELETE", "/v1/os-hosts/1", "", "delete"}, {"PATCH", "/v1/os-hosts/properties/gpu", `{"private":true}`, "update_resource_properties"},
	} {
		carryOut(t, c.demo, []step{{"", s.method, s.path, s.body, 403, map[string]any{"error_message": "Policy doesn't allow blazar:oshosts:" + s.rule + " to be performed"}}})
		carryOut(t, c.nobody, []step{{"", s.method, s.path, s.body, 401, nil}})
	}
}

func TestAReservedHostStaysInThePool(t *testing.T) {
	c := start(t, setup{hosts: computes("cmp-1", "cmp-2"), enrolled: true})
	carryOut(t, c.admin, []step{{"", "POST", "/v1/os-hosts", `{"name":"cmp-2"}`, 201, nil}})
	c.demo.book(`{"name": "r", "quantity": 1, "duration": 3600}`)
	carryOut(t, c.admin, []step{
		{"", "DELETE", "/v1/os-hosts/2", "", 409, map[string]any{"error_message": "Can't delete host cmp-2. The host is reserved."}},
		{"", "GET", "/v1/os-hosts/2", "", 200, map[string]any{"host.reservable": true}},
	})
	c.wait(3600)
	carryOut(t, c.admin, []step{{"", "DELETE", "/v1/os-hosts/2", "", 204, nil}})
}

func TestWhatReservationsSelectByDoesNotChange(t *testing.T) {
	c := start(t, setup{hosts: computes("cmp-1", "cmp-2")})
	carryOut(t, c.admin, []step{
		{"", "POST", "/v1/os-hosts", `{"name":"cmp-1","gpu":"4","rack":"b1"}`, 201, nil},
		{"", "POST", "/v1/os-hosts", `{"name":"cmp-2","gpu":"2"}`, 201, nil},
	})
	c.demo.book(`{"name": "r", "quantity": 1, "duration": 3600, "host_properties": [">=", "$gpu", 3]}`)
	carryOut(t, c.admin, []step{
		{"its host", "PUT", "/v1/os-hosts/1", `{"gpu":"8"}`, 409, map[string]any{
			"error_message": "Can't add extracapabilities ['gpu'] to Host 1: reservations select hosts by them"}},
		{"its host", "PUT", "/v1/os-hosts/1", `{"gpu":null}`, 409, nil},
		{"the type on all hosts", "PUT", "/v1/os-hosts/2", `{"gpu":"big"}`, 409, nil},
		{"nothing has changed", "GET", "/v1/os-hosts/2", "", 200, map[string]any{"host.gpu": "2"}},
		{"the same value", "PUT", "/v1/os-hosts/1", `{"gpu":"4","rack":"b2"}`, 200, map[string]any{"host.rack": "b2"}},
		{"another host", "PUT", "/v1/os-hosts/2", `{"gpu":"1"}`, 200, nil},
	})
	c.wait(3600)
	carryOut(t, c.admin, []step{{"afterwards", "PUT", "/v1/os-hosts/1", `{"gpu":"big"}`, 200, nil}})
}

func TestPropertiesAreListedAndHidden(t *testing.T) {
	hosts := computes("cmp-1", "cmp-2")
	hosts[1].Properties = map[string]inventory.Value{"row": inventory.NumberValue(3)}
	c := start(t, setup{hosts: hosts})
	carryOut(t, c.admin, []step{
		{"", "POST", "/v1/os-hosts", `{"name":"cmp-1","gpu":"False"}`, 201, nil}, {"", "PUT", "/v1/os-hosts/2", `{"gpu":"True"}`, 200, nil},
		{"property list", "GET", "/v1/os-hosts/properties", "", 200, map[string]any{
			"resource_properties": []any{map[string]any{"property": "gpu"}, map[string]any{"property": "row"}}}},
		{"property set without an option", "PATCH", "/v1/os-hosts/properties/row", `{"private":false}`, 200, map[string]any{
			"resource_property.property_name": "row", "resource_property.private": false, "resource_property.created_at": nil,
			"resource_property.updated_at": "2026-11-20T12:00:00.000000"}},
		{"property set --private", "PATCH", "/v1/os-hosts/properties/gpu", `{"private":true}`, 200, map[string]any{
			"resource_property.private": true, "resource_property.created_at": "2026-11-20T12:00:00.000000"}},
		{"property list --detail --all", "GET", "/v1/os-hosts/properties?detail=True&all=True", "", 200, map[string]any{
			"resource_properties.0": map[string]any{"property": "gpu", "private": true, "values": []any{"False", "True"}, "is_unique": false},
			"resource_properties.1": map[string]any{"property": "row", "private": false, "values": []any{"3"}, "is_unique": false}}},
		{"only with all", "GET", "/v1/os-hosts/properties?detail=True", "", 200, map[string]any{"resource_properties.#": 1}},
		{"an admin sees it on the host", "GET", "/v1/os-hosts/1", "", 200, map[string]any{"host.gpu": "False"}},
	})
	carryOut(t, c.reader, []step{
		{"only for admins", "GET", "/v1/os-hosts/properties?all=True", "", 200, map[string]any{"resource_properties.#": 1}},
		{"nor on the host", "GET", "/v1/os-hosts/1", "", 200, map[string]any{"host.gpu": "absent"}},
	})
	if a := c.reader.get("/v1/properties"); strings.Contains(string(a.body), "gpu") {
		t.Errorf("the native catalog has the private property: %v", a)
	}
}

func TestCapabilitiesAreTypedInTheNativeAPI(t *testing.T) {
	c := start(t, setup{hosts: computes("cmp-1", "cmp-2")})
	carryOut(t, c.admin, []step{{"", "POST", "/v1/os-hosts", `{"name":"cmp-1","gpus":"128","nvme":"True","model":"a100"}`, 201, nil}})
	got := want[v1.Host](t, c.reader.get("/v1/hosts/cmp-1"), http.StatusOK)
	if d := cmp.Diff(map[string]any{"gpus": 128.0, "nvme": true, "model": "a100"}, got.Properties); d != "" {
		t.Errorf("properties (-want +got):\n%s", d)
	}
	if r := c.demo.book(`{"name": "r", "quantity": 1, "duration": 60, "host_properties": [">", "$gpus", 64]}`); r.Quantity != 1 {
		t.Errorf("booked is %+v", r)
	}
}

func TestAnAnswerAboutThePoolWaitsForTheCloudAndOneAboutCapabilitiesDoesNot(t *testing.T) {
	waited := 0
	c := start(t, setup{hosts: computes("cmp-1"), enrolled: true, poolChanged: func(context.Context) { waited++ }})
	for _, s := range []struct {
		method, path, body string
		status, waited     int
	}{
		{"POST", "/v1/os-hosts", `{"name":"cmp-1"}`, 201, 1},
		{"POST", "/v1/os-hosts", `{"name":"cmp-1"}`, 409, 1},
		{"PUT", "/v1/os-hosts/1", `{"gpu":"a100"}`, 200, 1},
		{"DELETE", "/v1/os-hosts/1", "", 204, 2},
	} {
		if got := c.admin.send(s.method, s.path, s.body); got.status != s.status || waited != s.waited {
			t.Errorf("%s %s: status %d after %d waits, want %d after %d", s.method, s.path, got.status, waited, s.status, s.waited)
		}
	}
}

func TestAColumnIsNoPropertyThatCouldBePrivate(t *testing.T) {
	c := start(t, setup{hosts: computes("cmp-1")})
	carryOut(t, c.admin, []step{{"", "PATCH", "/v1/os-hosts/properties/vcpus", `{"private":true}`, 404, nil}})
	c.demo.lease(`{"name":"l","start_date":"2026-11-20 12:10","end_date":"2026-11-20 13:10","reservations":[
		{"resource_type":"physical:host","min":1,"max":1,"resource_properties":"[\">=\",\"$vcpus\",\"1\"]"}]}`)
}
