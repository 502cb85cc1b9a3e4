// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// blazarLease is what clients of Blazar read of a lease.
type blazarLease struct {
	ID, Name, Status string
	ProjectID        string `json:"project_id"`
	UserID           string `json:"user_id"`
	StartDate        string `json:"start_date"`
	EndDate          string `json:"end_date"`
	CreatedAt        string `json:"created_at"`
	Reservations     []map[string]any
	Events           []blazarEvent
}

type blazarEvent struct {
	ID     string
	Type   string `json:"event_type"`
	Time   *string
	Status *string
}

// blazarFault is an error as clients of Blazar read it.
type blazarFault struct {
	Code    int    `json:"error_code"`
	Message string `json:"error_message"`
	Name    int    `json:"error_name"`
	Refusal map[string]any
}

// lease makes a lease of whole hosts from noon to one o'clock, with changes to its body.
func (p caller) lease(body string) blazarLease {
	p.cloud.t.Helper()
	return leaseIn(p.cloud.t, p.post("/v1/leases", body), http.StatusCreated)
}

func leaseIn(t reporter, a answer, status int) blazarLease {
	t.Helper()
	return want[struct{ Lease blazarLease }](t, a, status).Lease
}

func (p caller) leases(query string) []blazarLease {
	p.cloud.t.Helper()
	return want[struct{ Leases []blazarLease }](p.cloud.t, p.get("/v1/leases"+query), http.StatusOK).Leases
}

// wantFault checks an error in Blazar's form.
func wantFault(t reporter, a answer, status int, says string) blazarFault {
	t.Helper()
	f := want[blazarFault](t, a, status)
	if f.Code != status || f.Name != status || !strings.Contains(f.Message, says) {
		t.Errorf("got %+v, want %d and %q", f, status, says)
	}
	return f
}

// hostLease is a body for a lease of hosts from start to end, which are such as "12:10".
func hostLease(name, start, end string, most int) string {
	return fmt.Sprintf(`{"name": %q, "start_date": "2026-11-20 %s", "end_date": "2026-11-20 %s", "before_end_date": null, "events": [],
		"reservations": [{"resource_type": "physical:host", "min": %d, "max": %d, "hypervisor_properties": "", "resource_properties": ""}]}`,
		name, start, end, most, most)
}

func TestACallInBlazarsFormHasItsHeaders(t *testing.T) {
	c := start(t, setup{})
	for _, a := range []answer{
		c.demo.get("/v1/leases"), c.demo.get("/v1/leases/nobody"), c.nobody.get("/v1/leases"), c.demo.get("/v1/leases/x/y"),
		c.demo.send("TRACE", "/v1/leases", ""), c.demo.post("/v1/leases", "no JSON"), c.demo.post("/v1/leases", hostLease("l", "12:10", "13:00", 1)),
	} {
		if kind := a.header.Get("Content-Type"); kind != "application/json" {
			t.Errorf("%v: Content-Type %q", a, kind)
		}
	}
	if kind := c.demo.get("/v1/reservations").header.Get("Content-Type"); kind != "application/json; charset=utf-8" {
		t.Errorf("elsewhere Content-Type is %q", kind)
	}
}

func TestTheMicroversionIsBlazarsUnlessTheRequestAsksForAnother(t *testing.T) {
	c := start(t, setup{})
	for header, want := range map[string]struct {
		status int
		answer string
	}{
		"":                                   {200, "reservation 1.0"},
		"reservation 1.0":                    {200, "reservation 1.0"},
		"reservation 1.1":                    {200, "reservation 1.1"},
		"reservation latest":                 {200, "reservation 1.1"},
		"compute 2.90":                       {200, "reservation 1.0"},
		"compute 2.90, reservation 1.1":      {200, "reservation 1.1"},
		"reservations 9.9":                   {200, "reservation 1.0"},
		"reservation 1.2":                    {406, ""},
		"reservation 2.0":                    {406, ""},
		"reservation 1.99999999999999999999": {406, ""},
		"reservation":                        {400, ""},
		"reservation 1":                      {400, ""},
		"reservation 1.01":                   {400, ""},
		"reservation one":                    {400, ""},
		"reservation 1.0 1.1":                {400, ""},
	} {
		a := c.demo.send("GET", "/v1/leases", "", "OpenStack-API-Version", header)
		if a.status != want.status || a.header.Get("OpenStack-API-Version") != want.answer || a.header.Get("Vary") != "OpenStack-API-Version" {
			t.Errorf("%q: got %d %q, Vary %q; want %+v", header, a.status, a.header.Get("OpenStack-API-Version"), a.header.Get("Vary"), want)
		}
	}
}

func TestWithoutBlazarThereAreNoLeases(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.Blazar = nil }})
	wantFault(t, c.demo.get("/v1/leases"), http.StatusNotFound, "Blazar's API is switched off here")
}

// The requests of Blazar's clients, as they send them. Those that are not served yet get a final
// answer.
func TestTheRequestsOfBlazarsClientsAreServed(t *testing.T) {
	const reservations = `"start_date": "2026-11-20 12:10", "end_date": "2026-11-20 13:00", "events": [], "before_end_date": null, "reservations": `
	for name, r := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"openstack, properties": {`{"name":"l1","start_date":"2039-01-01 10:00","end_date":"2039-01-01 12:00","reservations":[{"hypervisor_properties":"[\"and\",[\">=\",\"$vcpus\",\"4\"],[\">=\",\"$memory_mb\",\"1024\"]]","max":2,"min":1,"resource_type":"physical:host","resource_properties":""}],"events":[],"before_end_date":null}`, 201, ""},
		"openstack, blank":      {`{"name":"k1","start_date":"now","end_date":"2026-11-21 03:47","reservations":[{"resource_type":"physical:host","min":"","max":"","hypervisor_properties":"","resource_properties":""}],"events":[],"before_end_date":null}`, 201, ""},
		"openstack, instances":  {`{"name":"i1","start_date":"now","end_date":"2039-01-01 12:00","reservations":[{"affinity":"False","amount":3,"disk_gb":10,"memory_mb":2048,"vcpus":2,"resource_type":"virtual:instance","resource_properties":""}],"events":[{"event_type":"notify","event_date":"2039-01-01 09:00"}],"before_end_date":"2039-01-01 11:00"}`, 201, ""},
		"openstack, addresses":  {`{"name":"f1","start_date":"now","end_date":"2039-01-01 12:00","reservations":[{"required_floatingips":["172.24.4.10","172.24.4.11"],"amount":2,"network_id":"net-1","resource_type":"virtual:floatingip"},{"before_end":"snapshot","max":1,"min":1,"resource_type":"physical:host","hypervisor_properties":"","resource_properties":""}],"events":[],"before_end_date":null}`, 400, "Malformed parameter before_end (there is no Nova to make snapshots"},
		"openstack, flavor":     {`{"name":"FJ","start_date":"2040-01-01 10:00","end_date":"2040-01-01 12:00","reservations":[{"affinity":"None","amount":2,"flavor_id":"f1","resource_type":"flavor:instance"}],"events":[],"before_end_date":null}`, 400, "The flavor:instance resource type is not supported"},
		"horizon, hosts":        {`{"name":"h1", ` + reservations + `[{"resource_type":"physical:host","min":1,"max":2,"hypervisor_properties":"[\">=\", \"$vcpus\", \"2\"]","resource_properties":""}]}`, 201, ""},
		"horizon, blank":        {`{"name":"h2", ` + reservations + `[{"resource_type":"physical:host","min":null,"max":null,"hypervisor_properties":"","resource_properties":""}]}`, 201, ""},
		"horizon, instances":    {`{"name":"h3", ` + reservations + `[{"resource_type":"virtual:instance","amount":2,"vcpus":1,"memory_mb":512,"disk_gb":0,"affinity":"","resource_properties":""}]}`, 201, ""},
		"horizon, a minute ago": {`{"name":"h4","start_date":"2026-11-20 11:59","end_date":"2026-11-21 11:59","reservations":[]}`, 201, ""},
		"python-chi, new":       {`{"name":"c1", ` + reservations + `[{"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":"","resource_properties":"[\"==\",\"$node_type\",\"gpu\"]"}]}`, 201, ""},
		"python-chi, old":       {`{"name":"c2", ` + reservations + `[{"resource_type":"physical:host","min":"1","max":"1","hypervisor_properties":"","resource_properties":"[\"==\",\"$node_type\",\"gpu\"]"}]}`, 201, ""},
		"python-chi, network":   {`{"name":"c3", ` + reservations + `[{"resource_type":"network","network_name":"n","network_properties":"","resource_properties":""}]}`, 400, "The network resource type is not supported"},
		"python-chi, device":    {`{"name":"c4", ` + reservations + `[{"resource_type":"device","min":1,"max":1,"resource_properties":""}]}`, 400, "The device resource type is not supported"},
		"heat":                  {`{"name":"t1","start_date":"2026-11-20 12:10","end_date":"2026-11-20 13:00","events":[{"event_type":"x","time":"2026-11-20 12:30"}],"reservations":[{"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":null,"resource_properties":null,"before_end":"default"}]}`, 201, ""},
		"warre":                 {`{"name":"w1", ` + reservations + `[{"resource_type":"virtual:instance","amount":1,"vcpus":1,"memory_mb":512,"disk_gb":5,"ephemeral_gb":0,"affinity":null,"resource_properties":"","extra_specs":{}}]}`, 201, ""},
		"warre, extra specs":    {`{"name":"w2", ` + reservations + `[{"resource_type":"virtual:instance","amount":1,"vcpus":1,"memory_mb":512,"disk_gb":5,"affinity":null,"resource_properties":"","extra_specs":{"resources:VGPU":"1"}}]}`, 400, "Malformed parameter extra_specs"},
		"warre, ephemeral":      {`{"name":"w3", ` + reservations + `[{"resource_type":"virtual:instance","amount":1,"vcpus":1,"memory_mb":512,"disk_gb":5,"ephemeral_gb":20,"affinity":null,"resource_properties":""}]}`, 400, "Malformed parameter ephemeral_gb"},
		"a script, lists":       {`{"name":"s1", ` + reservations + `[{"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":["=","$vcpus","8"],"resource_properties":[]}]}`, 201, ""},
		"unknown keys":          {`{"name":"u1", "status":"ACTIVE","project_id":"other","trust_id":"t","more":[1], ` + reservations + `[{"resource_type":"physical:host","min":1,"max":1,"colour":"red"}]}`, 201, ""},
		"no reservations":       {`{"name":"n1","start_date":"now","end_date":"2026-11-20 13:00"}`, 201, ""},
		"a time with all":       {`{"name":"z1","start_date":"2026-11-20T13:10:30+01:00","end_date":"2026-11-20 13:00:59Z"}`, 201, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, setup{hosts: typed()})
			a := c.demo.post("/v1/leases", r.body)
			if r.status != http.StatusCreated {
				wantFault(t, a, r.status, r.says)
				if left := c.demo.leases(""); len(left) > 0 {
					t.Errorf("there are leases: %v", left)
				}
				return
			}
			l := leaseIn(t, a, http.StatusCreated)
			if l.Status != "PENDING" || l.ProjectID != "demo" || l.UserID != "demo-user" {
				t.Errorf("got %+v", l)
			}
			if shown := leaseIn(t, c.demo.get("/v1/leases/"+l.ID), http.StatusOK); shown.ID != l.ID || len(shown.Events) != len(l.Events) {
				t.Errorf("shown as %+v", shown)
			}
		})
	}
}

func TestALeaseShowsItsTimesToTheMinute(t *testing.T) {
	c := start(t, setup{})
	c.seconds.Add(37)
	for body, want := range map[string][2]string{
		`{"name":"a","start_date":"now","end_date":"2026-11-20 13:00:59"}`:                       {"2026-11-20T12:00:00.000000", "2026-11-20T13:00:00.000000"},
		`{"name":"b","start_date":"2026-11-20T13:10:30+01:00","end_date":"2026-11-20T14:00Z"}`:   {"2026-11-20T12:10:00.000000", "2026-11-20T14:00:00.000000"},
		`{"name":"c","start_date":"2026-11-20 12:00","end_date":"2026-11-20 13:00","events":[]}`: {"2026-11-20T12:00:00.000000", "2026-11-20T13:00:00.000000"},
	} {
		if l := c.demo.lease(body); l.StartDate != want[0] || l.EndDate != want[1] || l.CreatedAt != "2026-11-20 12:00:37" {
			t.Errorf("%s: got %+v", body, l)
		}
	}
}

func TestTheOwnerIsWarnedAsLongBeforeTheEndAsTheyAsk(t *testing.T) {
	c := start(t, setup{})
	for before, want := range map[string]string{
		`null`: "2026-11-20T14:00:00.000000", `""`: "2026-11-20T14:00:00.000000", `"2026-11-20 13:30"`: "2026-11-20T13:30:00.000000",
	} {
		l := c.demo.lease(`{"name":"l","start_date":"now","end_date":"2026-11-20 15:00","before_end_date":` + before + `}`)
		if e := l.Events[1]; e.Type != "before_end_lease" || *e.Time != want {
			t.Errorf("%s: got %s at %s", before, e.Type, *e.Time)
		}
	}
	short := c.demo.lease(`{"name":"l","start_date":"now","end_date":"2026-11-20 12:30"}`)
	if e := short.Events[1]; *e.Time != short.StartDate {
		t.Errorf("a short lease warns at %s, want its start", *e.Time)
	}
	for _, outside := range []string{"2026-11-20 12:00", "2026-11-20 13:00", "2026-11-21 12:00"} {
		wantFault(t, c.demo.post("/v1/leases", `{"name":"l","start_date":"2026-11-20 12:00","end_date":"2026-11-20 13:00","before_end_date":"`+outside+`"}`),
			http.StatusForbidden, "Datetime is out of lease limits")
	}
}

func TestAWrongLeaseIsToldInBlazarsWords(t *testing.T) {
	c := start(t, setup{hosts: typed(), limits: planning.Limits{Duration: 86400}})
	hosts := func(part string) string {
		return `{"name":"l","start_date":"2026-11-20 12:10","end_date":"2026-11-20 13:00","reservations":[{"resource_type":"physical:host",` + part + `}]}`
	}
	instances := func(part string) string {
		return `{"name":"l","start_date":"2026-11-20 12:10","end_date":"2026-11-20 13:00","reservations":[{"resource_type":"virtual:instance",` + part + `}]}`
	}
	for body, want := range map[string]struct {
		status int
		says   string
	}{
		``:                                {400, "the body is not JSON"},
		`[]`:                              {400, "must be a JSON object"},
		`"x"`:                             {400, "must be a JSON object"},
		`null`:                            {400, "must be a JSON object"},
		`{} {}`:                           {400, "must be one JSON object"},
		`{}`:                              {400, "Missing parameter name, start_date, end_date"},
		`{"name":"l","start_date":"now"}`: {400, "Missing parameter end_date"},
		`{"name":null,"start_date":"now","end_date":"2026-11-20 13:00"}`:                                                           {400, "Missing parameter name"},
		`{"name":5,"start_date":"now","end_date":"2026-11-20 13:00"}`:                                                              {400, "Malformed parameter name"},
		`{"name":"` + strings.Repeat("x", 81) + `","start_date":"now","end_date":"2026-11-20 13:00"}`:                              {400, "at most 80"},
		`{"name":"l","start_date":"bogus","end_date":"2026-11-20 13:00"}`:                                                          {400, "bogus is an invalid date. Required format: %Y-%m-%d %H:%M"},
		`{"name":"l","start_date":"now","end_date":5}`:                                                                             {400, "Malformed parameter end_date"},
		`{"name":"l","start_date":"now","end_date":""}`:                                                                            {400, "is an invalid date"},
		`{"name":"l","start_date":"2026-11-20 13:00","end_date":"2026-11-20 12:30"}`:                                               {400, "End date must be later than start date."},
		`{"name":"l","start_date":"now","end_date":"now"}`:                                                                         {400, "End date must be later than start date."},
		`{"name":"l","start_date":"2026-11-20 11:57","end_date":"2026-11-20 13:00"}`:                                               {400, "Start date must be later than current date"},
		`{"name":"l","start_date":"1970-01-01 00:00","end_date":"2026-11-20 13:00"}`:                                               {400, "Start date must be later than current date"},
		`{"name":"l","start_date":"now","end_date":"9999-12-31 00:00"}`:                                                            {400, "end_date: must lie before"},
		`{"name":"l","start_date":"now","end_date":"2026-11-20 13:00","reservations":{}}`:                                          {400, "Malformed parameter reservations"},
		`{"name":"l","start_date":"now","end_date":"2026-11-20 13:00","reservations":[null]}`:                                      {400, "Malformed parameter reservations"},
		`{"name":"l","start_date":"now","end_date":"2026-11-20 13:00","reservations":[{"resource_type":"physical:host","min":1}]}`: {400, "Missing parameter max"},
		`{"name":"l","start_date":"now","end_date":"2026-11-20 13:00","reservations":[{}]}`:                                        {400, "Missing parameter resource_type"},
		`{"name":"l","start_date":"now","end_date":"2026-11-20 13:00","reservations":[{"resource_type":"dummy.vm.plugin"}]}`:       {400, "The dummy.vm.plugin resource type is not supported"},
		`{"name":"l","start_date":"now","end_date":"2026-11-20 13:00","events":"x"}`:                                               {400, "Malformed parameter events"},
		`{"name":"l","start_date":"now","end_date":"2026-11-20 13:00","events":[{"event_type":1}]}`:                                {400, "Malformed parameter event_type"},
		hosts(`"min":"x","max":1`):                                                  {400, "Malformed parameter min"},
		hosts(`"min":1,"max":1.5`):                                                  {400, "Malformed parameter max"},
		hosts(`"min":true,"max":1`):                                                 {400, "Malformed parameter min"},
		hosts(`"min":99999999999999999999,"max":1`):                                 {400, "Malformed parameter min"},
		hosts(`"min":0,"max":1`):                                                    {400, "Malformed parameter min and max (must be greater than or equal to 1)"},
		hosts(`"min":1,"max":-1`):                                                   {400, "Malformed parameter min and max (must be greater than or equal to 1)"},
		hosts(`"min":3,"max":2`):                                                    {400, "Invalid values for min/max of hosts. Max must be equal to or larger than min."},
		hosts(`"min":1,"max":1,"hypervisor_properties":"[\"x\"]"`):                  {400, "Malformed requirements"},
		hosts(`"min":1,"max":1,"resource_properties":5`):                            {400, "Malformed requirements"},
		hosts(`"min":1,"max":1,"resource_properties":"[\"==\",\"$nosuch\",\"1\"]"`): {400, "no host has the property nosuch"},
		hosts(`"min":1,"max":1,"before_end":"email"`):                               {400, "Malformed parameter before_end"},
		hosts(`"min":1,"max":1,"before_end":"snapshot"`):                            {400, "there is no Nova to make snapshots"},
		hosts(`"min":1,"max":1,"on_start":"orchestration:5"`):                       {400, "Malformed parameter on_start"},
		instances(`"vcpus":"","memory_mb":1,"disk_gb":1,"amount":1`):                {400, "Missing parameter vcpus"},
		instances(`"vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"hypervisor_properties":"[\"==\",\"$gpu\",\"1\"]"`): {400, "Malformed parameter hypervisor_properties (only physical:host has it)"},
		instances(`"vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"before_end":"snapshot"`):                           {400, "Malformed parameter before_end (only physical:host has it)"},
		hosts(`"min":1,"max":1,"resource_properties":{"<":1}`):                                                        {400, `Malformed requirements {"<":1}`},
		instances(`"amount":1`): {400, "Missing parameter vcpus, memory_mb, disk_gb"},
		instances(`"vcpus":-1,"memory_mb":1,"disk_gb":1,"amount":1`):                                                                       {400, "Malformed parameter vcpus"},
		instances(`"vcpus":1,"memory_mb":1,"disk_gb":1,"amount":0`):                                                                        {400, "Malformed parameter amount"},
		instances(`"vcpus":0,"memory_mb":0,"disk_gb":0,"amount":1`):                                                                        {400, "Malformed parameter vcpus"},
		instances(`"vcpus":1,"memory_mb":1,"disk_gb":1,"amount":1,"affinity":"x"`):                                                         {400, "Malformed parameter affinity (must be a bool value or None)"},
		`{"name":"l","start_date":"now","end_date":"2026-11-22 13:00","reservations":[{"resource_type":"physical:host","min":1,"max":1}]}`: {403, "must be less than or equal to the maximum lease duration"},
		hosts(`"min":4,"max":5`): {400, "Not enough hosts available"},
		hosts(`"min":2,"max":5,"resource_properties":"[\"==\",\"$node_type\",\"gpu\"]"`): {400, "Not enough hosts available: 1 in the pool match resource_properties"},
	} {
		wantFault(t, c.demo.post("/v1/leases", body), want.status, want.says)
	}
	if left := c.stored(); len(left) > 0 {
		t.Errorf("something is booked: %v", left)
	}
}

// typed returns three hosts, one of them with a property.
func typed() []inventory.Host {
	gpu := machine("A")
	gpu.Properties = map[string]inventory.Value{"node_type": inventory.StringValue("gpu")}
	return []inventory.Host{gpu, machine("B"), machine("C")}
}

func TestARefusalSaysWhatWouldBePossible(t *testing.T) {
	c := start(t, setup{})
	c.demo.lease(hostLease("first", "12:10", "13:00", 2))
	f := wantFault(t, c.demo.post("/v1/leases", hostLease("second", "12:10", "13:00", 2)), http.StatusBadRequest, "Not enough hosts available")
	if f.Refusal["free"] != 1.0 || f.Refusal["earliest_start"] != "2026-11-20T13:00:00Z" {
		t.Errorf("the refusal is %v", f.Refusal)
	}
	later := c.demo.send("POST", "/v1/leases", hostLease("second", "12:10", "13:00", 2), "OpenStack-API-Version", "reservation 1.1")
	wantFault(t, later, http.StatusConflict, "Not enough hosts available")
}

func TestALeaseThatLacksAPartIsRefusedAsAWhole(t *testing.T) {
	c := start(t, setup{})
	body := `{"name":"l","start_date":"2026-11-20 12:10","end_date":"2026-11-20 13:00","reservations":[
		{"resource_type":"physical:host","min":2,"max":2},
		{"resource_type":"virtual:instance","vcpus":2,"memory_mb":512,"disk_gb":1,"amount":3},
		{"resource_type":"virtual:instance","vcpus":2,"memory_mb":512,"disk_gb":1,"amount":2}]}`
	wantFault(t, c.demo.post("/v1/leases", body), http.StatusBadRequest, "Not enough hosts available")
	if left := c.stored(); len(left) > 0 {
		t.Errorf("something is booked: %v", left)
	}
	if all := c.demo.leases(""); len(all) > 0 {
		t.Errorf("there are leases: %v", all)
	}
}

func TestTheStateOfALeaseFollowsItsReservations(t *testing.T) {
	c := start(t, setup{})
	full := c.demo.lease(hostLease("full", "12:10", "13:00", 1))
	empty := c.demo.lease(`{"name":"empty","start_date":"2026-11-20 12:10","end_date":"2026-11-20 13:00"}`)
	state := func(l blazarLease) string {
		l = leaseIn(t, c.demo.get("/v1/leases/"+l.ID), http.StatusOK)
		text := l.Status
		for _, r := range l.Reservations {
			text += fmt.Sprint(" ", r["status"])
		}
		for _, e := range l.Events {
			text += " " + *e.Status
		}
		return text
	}
	for _, step := range []struct {
		wait        int64
		full, empty string
	}{
		{0, "PENDING pending UNDONE UNDONE", "PENDING UNDONE UNDONE UNDONE"},
		{600, "ACTIVE active DONE UNDONE", "ACTIVE DONE DONE UNDONE"},
		{3000, "TERMINATED deleted DONE DONE", "TERMINATED DONE DONE DONE"},
	} {
		c.wait(step.wait)
		if got := state(full); got != step.full {
			t.Errorf("at %s: %s, want %s", at(step.wait), got, step.full)
		}
		if got := state(empty); got != step.empty {
			t.Errorf("at %s, without reservations: %s, want %s", at(step.wait), got, step.empty)
		}
	}
	if n := len(c.demo.leases("")); n != 2 {
		t.Errorf("%d leases are listed, want the 2 that have ended", n)
	}
	for _, l := range []blazarLease{full, empty} {
		if a := c.demo.delete("/v1/leases/" + l.ID); a.status != http.StatusNoContent || len(a.body) > 0 {
			t.Errorf("delete: got %v", a)
		}
		wantFault(t, c.demo.get("/v1/leases/"+l.ID), http.StatusNotFound, "Object with {'lease_id': '"+l.ID+"'} not found")
	}
	if n := len(c.demo.leases("")); n != 0 {
		t.Errorf("%d leases are listed after their deletion", n)
	}
}

func TestANameIsNoIdOfALease(t *testing.T) {
	c := start(t, setup{})
	l := c.demo.lease(hostLease("training", "12:10", "13:00", 1))
	member := l.Reservations[0]["id"].(string)
	for _, id := range []string{"training", "nothing%20here", "%00", "0", member, strings.Repeat("x", 3000)} {
		for _, a := range []answer{c.demo.get("/v1/leases/" + id), c.demo.send("PUT", "/v1/leases/"+id, `{}`), c.demo.delete("/v1/leases/" + id)} {
			wantFault(t, a, http.StatusNotFound, "not found")
		}
	}
	if shown := leaseIn(t, c.demo.get("/v1/leases/"+strings.ToUpper(l.ID)), http.StatusOK); shown.ID != l.ID {
		t.Errorf("in capitals it is %s", shown.ID)
	}
}

func TestWhoMayDoWhatWithALease(t *testing.T) {
	c := start(t, setup{})
	l := c.demo.lease(hostLease("l", "12:10", "13:00", 1))
	path := "/v1/leases/" + l.ID
	for _, call := range []struct{ method, path, body, rule string }{
		{"GET", path, "", "get"}, {"GET", path + "/hosts", "", "get"},
		{"PUT", path, `{"name": "x"}`, "put"}, {"PATCH", path, `{"name": "x"}`, "put"}, {"PUT", path, `{}`, "put"}, {"DELETE", path, "", "delete"},
	} {
		refusal := "Policy doesn't allow blazar:leases:" + call.rule + " to be performed"
		wantFault(t, c.other.send(call.method, call.path, call.body), http.StatusForbidden, refusal)
		wantFault(t, c.nobody.send(call.method, call.path, call.body), http.StatusUnauthorized, "")
		if call.rule != "get" {
			wantFault(t, c.reader.send(call.method, call.path, call.body), http.StatusForbidden, refusal)
		}
	}
	for _, list := range []string{"/v1/leases", "/v1/leases?lease_id=" + l.ID} {
		if a := c.other.get(list); strings.Contains(a.String(), l.ID) {
			t.Errorf("another project's list has the lease: %v", a)
		}
		wantFault(t, c.nobody.get(list), http.StatusUnauthorized, "")
	}
	wantFault(t, c.reader.post("/v1/leases", hostLease("x", "12:10", "13:00", 1)), http.StatusForbidden, "blazar:leases:post")
	wantFault(t, c.nobody.post("/v1/leases", hostLease("x", "12:10", "13:00", 1)), http.StatusUnauthorized, "")
	if now := leaseIn(t, c.reader.get(path), http.StatusOK); now.Name != "l" {
		t.Errorf("a reader sees %+v", now)
	}
	foreign := caller{c, "other/admin"}
	if now := leaseIn(t, foreign.send("PUT", path, `{"name":"renamed"}`), http.StatusOK); now.Name != "renamed" || now.ProjectID != "demo" {
		t.Errorf("an admin gets %+v", now)
	}
	if a := foreign.delete(path); a.status != http.StatusNoContent {
		t.Errorf("an admin's DELETE: %v", a)
	}
}

func TestAListIsWholeUnlessTheRequestHasALimit(t *testing.T) {
	var hosts []inventory.Host
	for i := range 122 {
		hosts = append(hosts, machine(fmt.Sprintf("host-%03d", i)))
	}
	c := start(t, setup{hosts: hosts})
	for i := range 120 {
		c.demo.lease(hostLease(fmt.Sprintf("l%d", i), fmt.Sprintf("13:%02d", i/3), "15:00", 1))
	}
	mine := c.other.lease(hostLease("mine", "12:10", "13:00", 1))
	native := c.other.book(fmt.Sprintf(`{"name": "native", "start_time": %q, "duration": 60}`, at(600)))
	if n := len(c.demo.leases("?x=y")); n != 120 {
		t.Errorf("the list has %d leases, want all 120", n)
	}
	ids := make(map[string]bool)
	path := "/v1/leases?limit=50&all_tenants=True"
	pages := 0
	for path != "" {
		page := want[struct {
			Leases []blazarLease
			Links  []struct{ Rel, Href string } `json:"leases_links"`
		}](t, c.demo.get(path), http.StatusOK)
		pages, path = pages+1, ""
		for _, l := range page.Leases {
			ids[l.ID] = true
		}
		for _, link := range page.Links {
			path = strings.TrimPrefix(link.Href, c.url)
		}
	}
	if pages != 3 || len(ids) != 120 {
		t.Errorf("%d pages have %d leases", pages, len(ids))
	}
	for query, want := range map[string]int{
		"": 122, "?project_id=other": 2, "?lease_name=mine": 1, "?lease_name=native": 1, "?lease_id=" + mine.ID: 1, "?lease_id=" + native.ID: 1,
		"?status=PENDING": 122, "?status=ACTIVE": 0, "?limit=3&lease_name=mine": 1,
	} {
		if n := len(c.admin.leases(query)); n != want {
			t.Errorf("%q: an admin's list has %d leases, want %d", query, n, want)
		}
	}
	wantFault(t, c.demo.get("/v1/leases?project_id=other"), http.StatusForbidden, "Policy doesn't allow")
	wantFault(t, c.demo.get("/v1/leases?limit=x"), http.StatusBadRequest, "Malformed parameter limit")
	wantFault(t, c.demo.get("/v1/leases?marker=x"), http.StatusBadRequest, "there is no lease x")
}

func TestAnAdminsListMayBeTheProjects(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.Blazar.ListAllForAdmin = false }})
	c.other.lease(hostLease("theirs", "12:10", "13:00", 1))
	if own, all := c.admin.leases(""), c.admin.leases("?all_tenants=True"); len(own) != 0 || len(all) != 1 {
		t.Errorf("%d leases, and %d with all_tenants", len(own), len(all))
	}
}

func TestADeletedLeaseLeavesTheListAtOnce(t *testing.T) {
	c := start(t, setup{})
	l := c.demo.lease(hostLease("az-1", "12:00", "13:00", 2))
	c.wait(1)
	if got := c.demo.leases("?lease_name=az-1"); len(got) != 1 || got[0].Status != "ACTIVE" {
		t.Fatalf("got %+v", got)
	}
	c.demo.delete("/v1/leases/" + l.ID)
	if got := c.demo.leases(""); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	again := c.demo.lease(hostLease("az-1", "12:10", "13:00", 3))
	if again.ID == l.ID {
		t.Error("the id is used again")
	}
}

func TestTheHostsOfALeaseAreItsOwnersOnceItIsActive(t *testing.T) {
	c := start(t, setup{})
	l := c.demo.lease(hostLease("l", "12:10", "13:00", 2))
	path := "/v1/leases/" + l.ID + "/hosts"
	count := func(p caller) int {
		return len(want[struct{ Hosts []map[string]string }](t, p.get(path), http.StatusOK).Hosts)
	}
	if mine, admins := count(c.demo), count(c.admin); mine != 0 || admins != 2 {
		t.Errorf("before the start: %d hosts for the owner, %d for an admin", mine, admins)
	}
	c.wait(600)
	if n := count(c.demo); n != 2 {
		t.Errorf("%d hosts, want 2", n)
	}
	wantFault(t, c.other.get(path), http.StatusForbidden, "blazar:leases:get")
}
