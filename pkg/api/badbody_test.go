// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
)

// mistake is a wrong request.
type mistake struct {
	body string
	// wantField is the field that the answer must name, wantSays a part of its message.
	wantField, wantSays string
	// meaning marks a body of the right form, which the document allows.
	meaning bool
}

// hold sends the mistake and checks that the answer names it and that nothing is stored.
func (m mistake) hold(t *testing.T, c *cloud, method, path string) {
	t.Helper()
	before := c.everything()
	a := c.admin.send(method, path, m.body)
	e := wantError(t, a, http.StatusBadRequest)
	if e.Field != m.wantField || !strings.Contains(e.Message, m.wantSays) {
		t.Errorf("got %q: %q, want %q and %q", e.Field, e.Message, m.wantField, m.wantSays)
	}
	if a.allowed != m.meaning {
		t.Errorf("the document allows it: %v", a.allowed)
	}
	if diff := cmp.Diff(before, c.everything()); diff != "" {
		t.Errorf("something was stored:\n%s", diff)
	}
}

// everything returns all that requests can change.
func (c *cloud) everything() []any {
	c.t.Helper()
	overrides, err := c.store.Overrides(c.t.Context())
	must(c.t, err)
	hidden, err := c.store.Hidden(c.t.Context())
	must(c.t, err)
	return []any{c.stored(), overrides, hidden}
}

func TestAWrongRequestIsToldItsFieldAndStoresNothing(t *testing.T) {
	c := start(t, setup{})
	c.demo.book(`{"name": "r", "duration": 60}`)
	long := strings.Repeat("ä", 256)
	for name, m := range map[string]mistake{
		"unknown field":          {`{"name": "r", "duration": 60, "quantitty": 2}`, "quantitty", `did you mean "quantity"?`, false},
		"unknown, nothing near":  {`{"name": "r", "duration": 60, "x": 2}`, "x", `there is no field "x"`, false},
		"another case":           {`{"Duration": 60}`, "Duration", `did you mean "duration"?`, false},
		"the first of several":   {`{"zz": 1, "duration": 60, "aa": 2}`, "aa", "there is no field", false},
		"name is a number":       {`{"duration": 60, "name": 5}`, "name", "must be a string, not 5", false},
		"a long value":           {fmt.Sprintf(`{"name": "r", "duration": 60, "quantity": %q}`, long), "quantity", `must be a whole number, not "` + strings.Repeat("ä", 59) + "…", false},
		"name too long":          {fmt.Sprintf(`{"duration": 60, "name": %q}`, long), "name", "more than 255 characters", false},
		"no name":                {`{"duration": 60}`, "name", "is required", false},
		"a name that is null":    {`{"duration": 60, "name": null}`, "name", "is required", false},
		"an empty name":          {`{"duration": 60, "name": ""}`, "name", "is required", false},
		"a name of blanks":       {`{"duration": 60, "name": " \t"}`, "name", "is required", false},
		"unknown kind":           {`{"name": "r", "duration": 60, "kind": "hosts"}`, "kind", `did you mean "host"?`, false},
		"quantity is a text":     {`{"name": "r", "duration": 60, "quantity": "2"}`, "quantity", `must be a whole number, not "2"`, false},
		"quantity is a fraction": {`{"name": "r", "duration": 60, "quantity": 1.5}`, "quantity", "must be a whole number, not 1.5", false},
		"quantity is a list":     {`{"name": "r", "duration": 60, "quantity": [2]}`, "quantity", "must be a whole number", false},
		"quantity 0":             {`{"name": "r", "duration": 60, "quantity": 0}`, "quantity", "must be at least 1, not 0", false},
		"quantity -1":            {`{"name": "r", "duration": 60, "quantity": -1}`, "quantity", "must be at least 1, not -1", false},
		"quantity 1e30":          {`{"name": "r", "duration": 60, "quantity": 1e30}`, "quantity", "must be a whole number, not 1e30", false},
		"unknown policy":         {`{"name": "r", "duration": 60, "policy": "first-fitt"}`, "policy", `did you mean "first-fit"?`, false},
		"policy is a number":     {`{"name": "r", "duration": 60, "policy": 1}`, "policy", "must be a string", false},
		"unknown end":            {`{"name": "r", "duration": 60, "on_end": "explode"}`, "on_end", `there is no on_end "explode"; choose one of delete, stop, shelve, leave`, false},
		"negative warning":       {`{"name": "r", "duration": 60, "before_end": -1}`, "before_end", "must not be negative", false},
		"warning in words":       {`{"name": "r", "duration": 60, "before_end": "soon"}`, "before_end", `"soon" is not a duration`, false},
		"a flavor":               {`{"name": "r", "duration": 60, "flavor": "m1.tiny"}`, "flavor", "use resources instead", false},
		"image too long":         {fmt.Sprintf(`{"name": "r", "duration": 60, "image": %q}`, long), "image", "more than 255 characters", false},
		"resources of a host":    {`{"name": "r", "duration": 60, "resources": {"vcpus": 1}}`, "resources", "is allowed for kind instance only", true},
		"a field of a rule":      {`{"name": "r", "duration": 60, "together": {"by": "zone", "apart-from": ["x"]}}`, "together.apart-from", "there is no field", false},
		"a rule is a number":     {`{"name": "r", "duration": 60, "together": {"by": "zone", "rule": 5}}`, "together.rule", "must be a string, not 5", false},
		"a rule is a text":       {`{"name": "r", "duration": 60, "together": "zone"}`, "together", `must be an object, not "zone"`, false},
		"apart from a text":      {`{"name": "r", "duration": 60, "together": {"by": "zone", "apart_from": "x"}}`, "together.apart_from", "must be a list", false},
		"a rule without a thing": {`{"name": "r", "duration": 60, "together": {}}`, "together.by", "is required", false},
		"affinity of a host":     {`{"name": "r", "duration": 60, "affinity": "same"}`, "affinity", "is allowed for kind instance only", true},
	} {
		t.Run(name, func(t *testing.T) { m.hold(t, c, "POST", "/v1/reservations") })
		t.Run(name+", dry run", func(t *testing.T) { m.hold(t, c, "POST", "/v1/reservations?dry_run=true") })
	}
}

func TestAWrongInstanceRequestIsToldItsField(t *testing.T) {
	c := start(t, setup{})
	for name, m := range map[string]mistake{
		"no resources":          {`"name": "x"`, "resources", "is required for kind instance", true},
		"empty resources":       {`"resources": {}`, "resources", "is required for kind instance", true},
		"resources are a list":  {`"resources": [1]`, "resources", "must be an object, not [1]", false},
		"nested unknown field":  {`"resources": {"vcpu": 1}`, "resources.vcpu", `did you mean "vcpus"?`, false},
		"nested wrong type":     {`"resources": {"memory_mb": "4096"}`, "resources.memory_mb", `must be a whole number, not "4096"`, false},
		"negative":              {`"resources": {"vcpus": -1}`, "resources", "must not be negative", false},
		"custom is a number":    {`"resources": {"custom": 3}`, "resources.custom", "must be an object of whole numbers, not 3", false},
		"custom has a text":     {`"resources": {"custom": {"CUSTOM_GPU": "1"}}`, "resources.custom", "must be an object of whole numbers", false},
		"custom is negative":    {`"resources": {"custom": {"CUSTOM_GPU": -1}}`, "resources.CUSTOM_GPU", "must not be negative", false},
		"unknown affinity":      {`"resources": {"vcpus": 1}, "affinity": "somewhere"`, "affinity", "there is no affinity", false},
		"a policy of hosts":     {`"resources": {"vcpus": 1}, "policy": "pe-best-fit"`, "policy", "kind instance accepts first-fit", true},
		"resources is a number": {`"resources": 5`, "resources", "must be an object, not 5", false},
	} {
		m.body = `{"name": "r", "kind": "instance", "duration": 60, ` + m.body + `}`
		t.Run(name, func(t *testing.T) { m.hold(t, c, "POST", "/v1/reservations") })
	}
}

// What a list may have is counted before its filters are read, which costs more.
func TestAWrongWishIsToldItsField(t *testing.T) {
	c := start(t, setup{})
	const none = `{"host_properties": ["=="]}`
	for name, m := range map[string]mistake{
		"too many alternatives": {`{"duration": 60, "alternatives": [` + strings.Repeat(none+", ", 4) + none + `]}`, "alternatives", "has 5 entries; at most 4 are allowed", false},
		"a filter":              {`{"duration": 60, "alternatives": [{}, ` + none + `]}`, "alternatives[1].host_properties", "==", false},
		"a range":               {`{"duration": {"min": 120, "max": 60}}`, "duration.max", "must be from min", true},
		"a misspelled end":      {`{"duration": 60, "quantity": {"min": 1, "mx": 2}}`, "quantity.mx", `did you mean "max"?`, false},
		"a capital":             {`{"duration": 60, "quantity": {"Min": 1, "max": 2}}`, "quantity.Min", `did you mean "min"?`, false},
		"far too many windows":  {`{"duration": 60, "windows": [` + strings.Repeat(`{}, `, 16) + `{}]}`, "windows", "has 17 entries", false},
	} {
		t.Run(name, func(t *testing.T) { m.hold(t, c, "POST", "/v1/offers") })
	}
}

func TestWrongTimesAreToldTheirField(t *testing.T) {
	c := start(t, setup{})
	for name, m := range map[string]mistake{
		"no times":                   {`{"name": "r"}`, "duration", "is required unless end_time is given", false},
		"start alone":                {fmt.Sprintf(`{"name": "r", "start_time": %q}`, at(60)), "duration", "is required", false},
		"end before start":           {fmt.Sprintf(`{"name": "r", "start_time": %q, "end_time": %q}`, at(60), at(30)), "end_time", "is not after the start", true},
		"end at the start":           {fmt.Sprintf(`{"name": "r", "start_time": %q, "end_time": %q}`, at(60), at(60)), "end_time", "is not after the start", true},
		"longer than the window":     {fmt.Sprintf(`{"name": "r", "start_time": %q, "end_time": %q, "duration": 61}`, at(60), at(120)), "duration", "61 s is longer than the window", true},
		"longer than until the end":  {fmt.Sprintf(`{"name": "r", "end_time": %q, "duration": "2m"}`, at(60)), "duration", "is longer than the window", true},
		"a start in the past":        {fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 60}`, at(-121)), "start_time", "lies in the past", true},
		"the epoch":                  {`{"name": "r", "start_time": "1970-01-01T00:00:00Z", "duration": 60}`, "start_time", "lies in the past", true},
		"the year 1":                 {`{"name": "r", "start_time": "0001-01-01T00:00:00Z", "duration": 60}`, "start_time", "lies in the past", true},
		"an end in the past":         {fmt.Sprintf(`{"name": "r", "end_time": %q, "duration": 60}`, at(-60)), "end_time", "is not after the start", true},
		"the end is the epoch":       {`{"name": "r", "end_time": "1970-01-01T00:00:00Z"}`, "end_time", "is not after the start", true},
		"beyond the calendar":        {`{"name": "r", "start_time": "9999-12-31T00:00:00Z", "duration": 60}`, "start_time", "must lie before 9000", true},
		"a word":                     {`{"name": "r", "start_time": "tomorrow", "duration": 60}`, "start_time", "must be a time with its zone", false},
		"no zone":                    {`{"name": "r", "start_time": "2026-12-01T10:00:00", "duration": 60}`, "start_time", "must be a time with its zone", false},
		"no such day":                {`{"name": "r", "start_time": "2026-02-30T10:00:00Z", "duration": 60}`, "start_time", "must be a time with its zone", true},
		"a number":                   {`{"name": "r", "end_time": 1796119200}`, "end_time", "must be a time with its zone", false},
		"duration 0":                 {`{"name": "r", "duration": 0}`, "duration", "must be at least one second", true},
		"duration -1":                {`{"name": "r", "duration": -1}`, "duration", "must be at least one second", false},
		"a fraction of a second":     {`{"name": "r", "duration": 0.5}`, "duration", `must be whole seconds or a string such as "2h30m", not 0.5`, false},
		"duration in other words":    {`{"name": "r", "duration": "two hours"}`, "duration", `"two hours" is not a duration`, false},
		"units in the wrong order":   {`{"name": "r", "duration": "30m2h"}`, "duration", "is not a duration", false},
		"duration 1e30":              {`{"name": "r", "duration": 1e30}`, "duration", "must be whole seconds", true},
		"duration is true":           {`{"name": "r", "duration": true}`, "duration", "must be whole seconds", false},
		"longer than 100 years":      {`{"name": "r", "duration": 9223372036854775807}`, "duration", "must be from one second to 100 years", true},
		"longer than can be counted": {`{"name": "r", "duration": "99999999999999w"}`, "duration", "is not a duration", true},
	} {
		t.Run(name, func(t *testing.T) { m.hold(t, c, "POST", "/v1/reservations") })
	}
}

func TestAWrongFilterIsToldItsRule(t *testing.T) {
	rich := machine("A")
	rich.Properties = map[string]inventory.Value{"nvme": inventory.BoolValue(true)}
	c := start(t, setup{hosts: []inventory.Host{rich}})
	deep := strings.Repeat(`["not", `, 65) + `["=", 1, 1]` + strings.Repeat("]", 65)
	wide := `["in", 1` + strings.Repeat(", 1", 300) + "]"
	for name, m := range map[string]mistake{
		"unknown operator":         {`["~", "$vcpus", 8]`, "", `there is no operator "~"`, false},
		"an operator in capitals":  {`["AND", ["=", 1, 1]]`, "", `there is no operator "AND"`, false},
		"no operator":              {`[8, "$vcpus"]`, "", "begins with 8", false},
		"= of one":                 {`["=", "$vcpus"]`, "", "= takes exactly two", false},
		"= of three":               {`["=", "$vcpus", 8, 8]`, "", "= takes exactly two", false},
		"in of one":                {`["in", 8]`, "", "in takes two or more", false},
		"not of two":               {`["not", ["=", 1, 1], ["=", 1, 1]]`, "", "not takes exactly one", false},
		"and of none":              {`["and"]`, "", "and takes one or more", false},
		"and of a value":           {`["and", true]`, "", "passes true to and", false},
		"an empty list":            {`[]`, "", "[] is not an expression", false},
		"an empty list as text":    {`"[]"`, "", "[] is not an expression", true},
		"too long":                 {fmt.Sprintf(`["=", "$zone", %q]`, strings.Repeat("z", 16<<10)), "", "at most 16384", true},
		"an empty expression":      {`["and", []]`, "", "[] is not an expression", false},
		"a number with a text":     {`["=", "$vcpus", "eight"]`, "", "$vcpus, which is a number", true},
		"in of mixed types":        {`["in", "$zone", "az1", 2]`, "", "which is a number", true},
		"a bool ordered":           {`["<", "$nvme", true]`, "", "which is a bool", true},
		"a list compared":          {`["=", "$traits", "X"]`, "", "which is a list", true},
		"null as an argument":      {`["=", "$vcpus", null]`, "", "compares null", false},
		"an object as an argument": {`["=", "$vcpus", {}]`, "", "compares {}", false},
		"$ alone":                  {`["=", "$", 8]`, "", "$ needs the name of a property", true},
		"no list":                  {`{"vcpus": 8}`, "", "is not an expression", false},
		"a number":                 {`5`, "", "is not an expression", false},
		"a text that is no JSON":   {`"vcpus = 8"`, "", "is not JSON", true},
		"a text with a mistake":    {`"[\"~\", 1, 1]"`, "", `there is no operator "~"`, true},
		"a number without end":     {`["=", "$vcpus", 1e400]`, "", "number that is too large", true},
		"too deep":                 {deep, "", "nests more than 64", true},
		"too wide":                 {wide, "", "more than 256", true},
	} {
		m.wantField, m.body = "host_properties", fmt.Sprintf(`{"name": "r", "duration": 60, "host_properties": %s}`, m.body)
		t.Run(name, func(t *testing.T) { m.hold(t, c, "POST", "/v1/reservations") })
	}
}
