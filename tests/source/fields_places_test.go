// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api/calendar"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/notice"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// fieldPlace is a place in which users meet the fields of a reservation.
type fieldPlace struct {
	name string
	has  func(field string) bool
}

// fieldPlaces returns all places. A field is in an answer or a notification if another value of it changes
// them. Its keys in the answer are those under which the other places must have it.
func fieldPlaces(t *testing.T) []fieldPlace {
	t.Helper()
	keys := map[string][]string{}
	for _, field := range fieldsOf(t) {
		keys[field] = shownAs(t, field, func(r reservation.Reservation) any { return v1.Of(&r) })
	}
	// named returns a place that has the fields with keys that it names.
	named := func(name string, has func(key string) bool) fieldPlace {
		return fieldPlace{name, func(field string) bool {
			return len(keys[field]) > 0 && !slices.ContainsFunc(keys[field], func(key string) bool { return !has(key) })
		}}
	}
	shown := func(name string, show func(r reservation.Reservation) any) fieldPlace {
		return fieldPlace{name, func(field string) bool { return len(shownAs(t, field, show)) > 0 }}
	}
	asked, changed, answered := goNames(reflect.TypeFor[v1.ReservationRequest]()), goNames(reflect.TypeFor[v1.ReservationChange]()), goNames(reflect.TypeFor[v1.Reservation]())
	read := selected(t, "pkg/api/reservations/convert.go", "request", "body")
	patched := selected(t, "pkg/api/reservations/convert.go", "changeOf", "body")
	flags := selected(t, "cmd/almanac/reservation_create.go", "", "b.request", "req")
	maintenanceFlags := composed(t, "cmd/almanac/host_maintenance.go", "v1.ReservationRequest")
	changeFlags := composed(t, "cmd/almanac/reservation_change.go", "v1.ReservationChange")
	columns := append(selected(t, "cmd/almanac/reservation.go", "reservationFields", "r"), selected(t, "cmd/almanac/reservation.go", "eventLine", "e")...)
	script := func(name string) string { return repository.Read(t, "../../pkg/dashboard/page/"+name) }
	form, changeForm, page := script("form-request.js"), script("reservation-fields.js"), script("reservation-view.js")+script("reservation-words.js")
	_, changeForm, _ = strings.Cut(changeForm, "\nconst written = {")
	changeForm, _, _ = strings.Cut(changeForm, "\n};\n")
	_, form, _ = strings.Cut(form, "\nexport function bodyOf(")
	form, _, _ = strings.Cut(form, "\nfunction ruleOf(")
	again := bookedAgain(t)
	_, guide, _ := strings.Cut(repository.Read(t, "../../docs/api.md"), "\n### POST /v1/reservations\n")
	guide, _, _ = strings.Cut(guide, "\n### GET /v1/calendar\n")
	blazarAsked, blazarChanged := blazarRequests(t)
	return []fieldPlace{
		named(inRequest, func(key string) bool { return slices.Contains(read, asked[timeKey(key)]) }),
		named(inFlags, func(key string) bool { return slices.Contains(flags, asked[timeKey(key)]) }),
		named(inMaintenance, func(key string) bool { return slices.Contains(maintenanceFlags, asked[timeKey(key)]) }),
		named(inForm, func(key string) bool { return words(form, `\bbody\.KEY\b|\bKEY: `)(timeKey(key)) }),
		named(inAgain, func(key string) bool { return slices.Contains(again, key) }),
		named(inChange, func(key string) bool { return slices.Contains(patched, changed[timeKey(key)]) }),
		named(inChangeFlags, func(key string) bool { return slices.Contains(changeFlags, changed[timeKey(key)]) }),
		named(inChangeForm, func(key string) bool { return words(changeForm, `\(\{KEY\b`)(timeKey(key)) }),
		shown(inLog, func(r reservation.Reservation) any { return planning.Difference(reservation.Reservation{}, r) }),
		shown(inAnswer, func(r reservation.Reservation) any { return v1.Of(&r) }),
		named(inColumns, func(key string) bool { return slices.Contains(columns, answered[key]) }),
		named(inPage, words(page, `\b(one|event)\.KEY\b`)),
		named(inGuide, words(guide, "`KEY`|\"KEY\"")),
		shown(inFeed, func(r reservation.Reservation) any {
			return calendar.ICalendar("p", []reservation.Reservation{r}, func(*reservation.Reservation) bool { return true })
		}),
		{inBlazarRequest, func(field string) bool { return slices.ContainsFunc(namesOf(field), blazarAsked.has) }},
		{inBlazarChange, func(field string) bool { return slices.ContainsFunc(namesOf(field), blazarChanged.has) }},
		shown(inBlazarAnswer, func(r reservation.Reservation) any {
			l := reservation.OwnLease(r)
			if r.Membership.LeaseID != "" {
				l.ID = r.Membership.LeaseID
			}
			return blazar.ExtendedLeaseOf(&l, r.Created)
		}),
		shown(inNotification, func(r reservation.Reservation) any { return payloadOf(t, r, notice.Almanac) }),
		shown(inBlazarNotification, func(r reservation.Reservation) any { return payloadOf(t, r, notice.Blazar) }),
	}
}

// timeKey returns the key of a request for a key of an answer.
func timeKey(key string) string {
	if key == "start" || key == "end" {
		return key + "_time"
	}
	return key
}

func lastPart(key string) string { return key[strings.LastIndex(key, ".")+1:] }

// words reports whether a text matches a pattern, in which KEY stands for the last part of a key.
func words(text, pattern string) func(key string) bool {
	return func(key string) bool {
		return regexp.MustCompile(strings.ReplaceAll(pattern, "KEY", regexp.QuoteMeta(lastPart(key)))).MatchString(text)
	}
}

// goNames returns the names of the fields of a JSON type by their keys.
func goNames(of reflect.Type) map[string]string {
	names := map[string]string{}
	for i := range of.NumField() {
		field := of.Field(i)
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names[key] = field.Name
		if field.Type == reflect.TypeFor[[]v1.Event]() {
			for inner, name := range goNames(field.Type.Elem()) {
				names[key+"."+inner] = name
			}
		}
	}
	return names
}

// inspect calls do with the nodes of a function of a file, or of all its functions if function is empty.
func inspect(t *testing.T, path, function string, do func(n ast.Node)) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../"+path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, d := range file.Decls {
		if f, is := d.(*ast.FuncDecl); is && (function == "" || f.Name.Name == function) {
			found = true
			ast.Inspect(f, func(n ast.Node) bool {
				do(n)
				return true
			})
		}
	}
	if !found {
		t.Fatalf("%s has no function %s", path, function)
	}
}

// selected returns the names X of all expressions such as body.X in a function, where body is one of the values.
func selected(t *testing.T, path, function string, values ...string) (names []string) {
	t.Helper()
	inspect(t, path, function, func(n ast.Node) {
		if s, is := n.(*ast.SelectorExpr); is && slices.Contains(values, types.ExprString(s.X)) {
			names = append(names, s.Sel.Name)
		}
	})
	return names
}

// composed returns the fields that the literals of a type in a file set.
func composed(t *testing.T, path, of string) (names []string) {
	t.Helper()
	inspect(t, path, "", func(n ast.Node) {
		literal, is := n.(*ast.CompositeLit)
		if !is || literal.Type == nil || types.ExprString(literal.Type) != of {
			return
		}
		for _, e := range literal.Elts {
			if pair, is := e.(*ast.KeyValueExpr); is {
				names = append(names, types.ExprString(pair.Key))
			}
		}
	})
	return names
}

// fieldNames is a set of names of fields.
type fieldNames map[string]bool

func (n fieldNames) has(name string) bool { return n[name] }

// add adds the fields with a value, and those of the elements of lists.
func (n fieldNames) add(v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch value := v.Field(i); {
		case field.Anonymous:
			n.add(value)
		case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct:
			for j := range value.Len() {
				n.add(value.Index(j))
			}
		case !value.IsZero():
			n[field.Name] = true
		}
	}
}

// namesOf returns the names under which the request for a lease has a field of a reservation.
func namesOf(field string) []string {
	switch field {
	case "ID": // of a change: the one to change
		return nil
	case "Quantity":
		return []string{"Min", "Max"}
	case "Addresses.Network":
		return []string{"Network"}
	case "Addresses.Address", "Addresses.Required":
		return []string{"RequiredAddresses", "AnyAddress"}
	}
	for _, prefix := range []string{"Membership.", "Span."} {
		field = strings.TrimPrefix(field, prefix)
	}
	return []string{field}
}

// blazarRequests reads requests in Blazar's form that have every key which Blazar's form and its extension know, and
// returns the fields that get a value.
func blazarRequests(t *testing.T) (asked, changed fieldNames) {
	t.Helper()
	hosts, err := inventory.NewSnapshot([]inventory.Host{{
		Number: 1, Name: "a", Reservable: true, Capacity: resource.Vector{VCPUs: 8, MemoryMB: 1024, DiskGB: 10},
		Properties: map[string]inventory.Value{"gpu": inventory.StringValue("a100")},
	}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	reader := blazar.Reader{Now: examples()[0].Created, Hosts: hosts, Extended: true, Neutron: true, Flavor: func(string) (m reservation.MemberRequest, err error) {
		m.Kind, m.Membership.Flavor, m.Resources = reservation.Instances, "{}", resource.Vector{VCPUs: 2}
		return m, nil
	}}
	members := `{"id": "ID", "resource_type": "physical:host", "min": 1, "max": 3, "hypervisor_properties": "[\">=\", \"$vcpus\", \"2\"]",
			"resource_properties": "[\"=\", \"$gpu\", \"a100\"]", "before_end": "snapshot"},
		{"id": "ID", "resource_type": "virtual:instance", "vcpus": 2, "memory_mb": 512, "disk_gb": 1, "amount": 2, "affinity": true,
			"resource_properties": "[\"=\", \"$gpu\", \"a100\"]"},
		{"id": "ID", "resource_type": "flavor:instance", "flavor_id": "7", "amount": 2},
		{"id": "ID", "resource_type": "virtual:floatingip", "network_id": "n", "amount": 1, "required_floatingips": ["192.0.2.1"]}`
	const times = `"name": "l", "start_date": "2026-11-22 12:00", "end_date": "2026-11-22 13:00", "before_end_date": "2026-11-22 12:50", "on_end": "shelve"`
	parse := func(text string) blazar.Object {
		o, err := blazar.ReadObject([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	request, err := reader.Create(parse("{" + times + `, "reservations": [` + members + "]}"))
	if err != nil {
		t.Fatal(err)
	}
	asked, changed = fieldNames{}, fieldNames{}
	asked.add(reflect.ValueOf(request))
	for _, r := range examples() {
		if r.Membership.LeaseID == "" {
			continue
		}
		one := map[reservation.Kind]string{
			reservation.Hosts:     `"min": 1, "max": 4, "resource_properties": "", "hypervisor_properties": "[\">=\", \"$vcpus\", \"2\"]"`,
			reservation.Instances: `"amount": 3, "vcpus": 4, "affinity": false, "resource_properties": ""`,
			reservation.Addresses: `"amount": 3, "required_floatingips": []`,
		}[r.Kind]
		change, err := reader.Change(parse("{"+times+`, "reservations": [{"id": "`+r.ID+`", `+one+"}]}"), reservation.OwnLease(r))
		if err != nil {
			t.Fatalf("%s: %v", r.Kind, err)
		}
		changed.add(reflect.ValueOf(change))
	}
	return asked, changed
}

// sentAll keeps what is sent.
type sentAll []oslo.Notification

// Notify keeps a notification.
func (s *sentAll) Notify(_ context.Context, n oslo.Notification) error {
	*s = append(*s, n)
	return nil
}

// payloadOf returns the payload of the notification that a reservation starts; nil if there is none.
func payloadOf(t *testing.T, r reservation.Reservation, format string) any {
	t.Helper()
	sent := changeSent(t, reservation.ActionStart, r, format)
	if len(sent) == 0 {
		return nil
	}
	return sent[0].Payload
}

// innerSchemas has the types of the API that the contract has within a schema, by the keys that lead to them.
var innerSchemas = map[string]string{
	"Block": "Refusal.blocked_by", "Blocker": "Refusal.blocked_by.reservations", "CanceledServer": "Cancellation.servers", "EnergyApproval": "EnergyPlan.approved",
	"EnergyDemand": "EnergyDemands.demand", "EnergyHold": "EnergyHost.hold", "EnergyWakeTest": "EnergyHost.last_wake_test", "Error": "ErrorAnswer.error",
	"HostServer": "Offer.servers", "LimitValues": "Limits.limits", "LimitedUsage": "Limits.used", "PlacementRequest": "FilterQuestion.request",
	"WeighRequest": "WeighQuestion.request",
}

// schemaOf returns the schema of a type of the API; nil if there is none.
func schemaOf(document *openapi3.T, name string) *openapi3.Schema {
	if path, inner := innerSchemas[name]; inner {
		name = path
	}
	keys := strings.Split(name, ".")
	s := document.Components.Schemas[keys[0]]
	for _, key := range keys[1:] {
		if s == nil {
			return nil
		}
		if s = s.Value.Properties[key]; s != nil && s.Value.Items != nil {
			s = s.Value.Items
		}
	}
	if s == nil {
		return nil
	}
	return s.Value
}

// The schemas have what the types of the API have.
func TestTheContractHasEachFieldOfItsTypes(t *testing.T) {
	document, err := openapi3.NewLoader().LoadFromFile("../../pkg/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const path = module + "/pkg/api/v1"
	all := builtPackages(t, "./pkg/api/v1")
	v1Types, err := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(all[path].Export) }).Import(path)
	if err != nil {
		t.Fatal(err)
	}
	compared, asked := 0, requestTypes(t)
	for _, name := range v1Types.Scope().Names() {
		of, is := v1Types.Scope().Lookup(name).Type().Underlying().(*types.Struct)
		if !is || !token.IsExported(name) {
			continue
		}
		var typed, listed, always []string
		for i := range of.NumFields() {
			key, how, _ := strings.Cut(reflect.StructTag(of.Tag(i)).Get("json"), ",")
			if key == "" {
				continue
			}
			typed = append(typed, key)
			if how == "" {
				always = append(always, key)
			}
		}
		if len(typed) == 0 {
			continue // a text or a number in JSON
		}
		schema := schemaOf(document, name)
		if schema == nil {
			t.Errorf("openapi.yaml has no schema %s, and innerSchemas no way to one", name)
			continue
		}
		compared++
		for key := range schema.Properties {
			listed = append(listed, key)
		}
		slices.Sort(typed)
		slices.Sort(listed)
		if diff := cmp.Diff(typed, listed); diff != "" {
			t.Errorf("%s (-type +openapi.yaml):\n%s", name, diff)
		}
		if whole, _, _ := strings.Cut(innerSchemas[name], "."); asked[name] || asked[whole] {
			continue // the handler decides what a request must have
		}
		required := slices.Sorted(slices.Values(schema.Required))
		slices.Sort(always)
		if diff := cmp.Diff(always, required, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("keys that each %s has (-type without omitempty +required of openapi.yaml):\n%s", name, diff)
		}
	}
	if compared < 50 {
		t.Errorf("%d types are compared", compared)
	}
}
