// SPDX-License-Identifier: Apache-2.0

package blazar_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// rack is a world of thirty hosts, for Almanac and for Blazar. Most hosts lack one capability or another.
func rack(t *testing.T) (ours *inventory.Snapshot, blazars []map[string]any) {
	t.Helper()
	capabilities := map[string][]string{ // "-" where a host lacks it
		"gpu":       {"a100", "v100", "A100", "h100", "-"},
		"slots":     {"4", "16", "64", "128", "1000", "-", "8"},
		"ssd":       {"True", "False", "-"},
		"raid":      {"true", "false", "false", "-"},
		"size":      {"4", "16", "big", "-", "True"},
		"firmware":  {"1.9", "1.10", "2.0", "-"},
		"note":      {"rack 4, row 2", "it's", "50% off", "größer", "", "-", `a "quoted" word`},
		"disk kind": {"nvme", "sata", "-"},
	}
	var hosts []inventory.Host
	overrides := make(map[string]inventory.Override)
	for i := range 30 {
		h := inventory.Host{
			Number: int64(i + 1), Name: fmt.Sprintf("host-%02d", i), Zone: []string{"az1", "az2", "nova"}[i%3], Reservable: true,
			Capacity:   resource.Vector{VCPUs: []int64{4, 8, 16, 64, 128}[i%5], MemoryMB: int64(1024 * (i + 1)), DiskGB: []int64{9, 100, 1000}[i%3]},
			Hypervisor: inventory.Hypervisor{Name: fmt.Sprintf("node-%02d.example.org", i), Type: []string{"QEMU", "XEN"}[i%2], Version: []int64{9000, 7002010, 10000001}[i%3]},
		}
		texts, padded := make(map[string]string), make(map[string]string)
		for n, name := range slices.Sorted(maps.Keys(capabilities)) {
			values := capabilities[name]
			if text := values[(i*(n+3)+i/len(values))%len(values)]; text != "-" {
				texts[name] = text
			}
		}
		maps.Copy(padded, texts)
		padded["padded_id"] = pad(blazar.HostID(&h))
		if slots, has := texts["slots"]; has {
			padded["padded_slots"] = pad(slots)
		}
		if kind, has := texts["disk kind"]; has {
			padded["disk_kind"] = kind
		}
		hosts = append(hosts, h)
		overrides[h.Name] = inventory.Override{Capabilities: &inventory.Capabilities{Texts: texts}}
		blazars = append(blazars, map[string]any{"capabilities": padded, "row": map[string]any{
			"id": blazar.HostID(&h), "vcpus": h.Capacity.VCPUs, "cpu_info": "{}", "hypervisor_type": h.Hypervisor.Type, "hypervisor_version": h.Hypervisor.Version,
			"hypervisor_hostname": h.Hypervisor.Name, "service_name": h.Name, "memory_mb": h.Capacity.MemoryMB, "local_gb": h.Capacity.DiskGB,
			"availability_zone": h.Zone, "trust_id": "secret", "reservable": true,
		}})
	}
	ours, err := inventory.NewSnapshot(hosts, overrides, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ours, blazars
}

// pad returns a number as a text that sorts as the number does.
func pad(number string) string { return fmt.Sprintf("%08s", number) }

// expression is a query for Almanac, and the query that selects the same hosts in Blazar. They differ
// where Blazar misreads the query: it compares numbers in capabilities as texts, so its query has padded
// ones, and of a conjunction within a conjunction it reads one condition, so its query has none.
type expression struct{ query, asked string }

// text returns a query as JSON.
func text(query []any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(query) // cannot fail for lists of strings
	return strings.TrimSuffix(b.String(), "\n")
}

// constants are the values to compare with, by property.
var constants = map[string][]string{
	"id": {"1", "5", "10", "23", "100"}, "slots": {"4", "8", "16", "64", "100", "128", "1000"},
	"vcpus": {"4", "8", "16", "64", "100"}, "memory_mb": {"1024", "8192", "20000", "9"}, "local_gb": {"9", "100", "1000", "50"},
	"hypervisor_version": {"9000", "7002010", "10000001"}, "hypervisor_type": {"QEMU", "XEN", "LXC"},
	"hypervisor_hostname": {"node-03.example.org", "node-17.example.org", "node"}, "service_name": {"host-00", "host-20", "host-99"},
	"availability_zone": {"az1", "az2", "nova", "az"},
	"gpu":               {"a100", "A100", "v100", "h100", "b"}, "ssd": {"True", "False", "true", "yes"}, "raid": {"true", "false", "True", "1"},
	"size": {"4", "16", "big", "True", "5"}, "firmware": {"1.9", "1.10", "2.0", "1.95"}, "note": {"rack 4, row 2", "it's", "50% off", "größer", "m", `a "quoted" word`},
	"nosuch": {"1"},
}

// condition draws a comparison.
func condition(t *rapid.T) (query, asked []any) {
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(constants))).Draw(t, "name")
	operators := []string{"==", "=", "!=", "<", "<=", ">", ">="}
	if name == "ssd" || name == "raid" {
		operators = operators[:3]
	}
	operator, constant := rapid.SampledFrom(operators).Draw(t, "operator"), rapid.SampledFrom(constants[name]).Draw(t, "constant")
	query = []any{operator, "$" + name, constant}
	if name == "id" || name == "slots" {
		return query, []any{operator, "$padded_" + name, pad(constant)}
	}
	return query, query
}

// expressions draws a query: a comparison, or a conjunction of some or of conjunctions.
var expressions = rapid.Custom(func(t *rapid.T) expression {
	switch form := rapid.IntRange(0, 9).Draw(t, "form"); {
	case form == 0:
		nothing := rapid.SampledFrom([]string{"", "[]"}).Draw(t, "nothing")
		return expression{nothing, nothing}
	case form < 5:
		query, asked := condition(t)
		return expression{text(query), text(asked)}
	}
	var conditions func(depth int) (query, asked []any)
	conditions = func(depth int) (query, asked []any) {
		query = []any{"and"}
		for range rapid.IntRange(1, 4-depth).Draw(t, "conditions") {
			one, flat := condition(t)
			query, asked = append(query, one), append(asked, flat)
		}
		if depth < 2 && rapid.IntRange(0, 3).Draw(t, "nests") == 0 {
			inner, flat := conditions(depth + 1)
			query, asked = append(query, inner), append(asked, flat...)
		}
		return query, asked
	}
	query, asked := conditions(0)
	return expression{text(query), text(append([]any{"and"}, asked...))}
})

// refused is in the place of what Blazar would have to be asked: Almanac refuses the query.
const refused = "refused"

// traps are what docs/blazar.md lists: queries that Blazar reads otherwise than Almanac, with one that
// selects in Blazar what the query selects in Almanac.
var traps = []expression{
	// Capabilities are texts, also whole numbers.
	{`[">=", "$slots", "100"]`, `[">=", "$padded_slots", "00000100"]`},
	{`["<", "$id", "10"]`, `["<", "$padded_id", "00000010"]`},
	{`["==", "$slots", "64.0"]`, `["==", "$slots", "64"]`},
	{`["<", "$slots", "many"]`, refused},
	// A database reads a number at the beginning of a text.
	{`["==", "$vcpus", "8 cores"]`, `["==", "$vcpus", "-1"]`},
	{`["!=", "$vcpus", "8 cores"]`, ``},
	{`[">", "$vcpus", "many"]`, refused},
	// Conjunctions within conjunctions.
	{`["and", [">", "$vcpus", "4"], ["and", ["==", "$gpu", "a100"], ["==", "$ssd", "True"]]]`,
		`["and", [">", "$vcpus", "4"], ["==", "$gpu", "a100"], ["==", "$ssd", "True"]]`},
	// Values that are no texts.
	{`[">=", "$vcpus", 8]`, `[">=", "$vcpus", "8"]`},
	{`["==", "$ssd", true]`, `["==", "$ssd", "True"]`},
	{`["==", "$raid", true]`, `["==", "$raid", "true"]`},
	{`null`, ``},
	// MariaDB ignores case and spaces at the end in columns.
	{`["==", "$service_name", "HOST-03"]`, `["==", "$service_name", "nobody"]`},
	{`["==", "$hypervisor_type", "qemu "]`, `["==", "$hypervisor_type", "nothing"]`},
	{`["<", "$hypervisor_type", "ironic"]`, ``},
	// A column that is true or false is a number there.
	{`["==", "$reservable", "True"]`, ``},
	{`["!=", "$reservable", "True"]`, `["==", "$vcpus", "-1"]`},
	{`["<", "$ssd", "True"]`, refused},
	{`[">=", "$reservable", "1"]`, refused},
	// Columns that say nothing that an owner can want.
	{`["==", "$trust_id", "secret"]`, refused},
	{`["!=", "$cpu_info", "x"]`, refused},
	{`["==", "$status", "null"]`, refused},
	{`[">", "$created_at", "2020-01-01"]`, refused},
	// Spaces in a name, in which Blazar looks for its operator.
	{`["==", "$disk kind", "nvme"]`, `["==", "$disk_kind", "nvme"]`},
	{`["==", "$vcpus in 8,16", "x"]`, refused},
	// A text within the list.
	{`["and", "[\"==\", \"$gpu\", \"a100\"]"]`, refused},
}

// alike are queries at the edges that both read alike.
var alike = []string{
	`["==", "$gpu", "A100"]`, `["!=", "$gpu", "a100"]`, `["==", "$ssd", "true"]`, `["!=", "$ssd", "true"]`, `["!=", "$raid", "True"]`, `["==", "$raid", "true"]`,
	`["==", "$reservable", "1"]`, `["==", "$reservable", "0"]`, `["!=", "$reservable", "0"]`, `["==", "$vcpus", "8.0"]`, `[">", "$vcpus", "7.5"]`, `["==", "$slots", "064"]`, `["!=", "$slots", "many"]`,
	`["!=", "$note", "null"]`, `["==", "$service_name", "null"]`, `["!=", "$service_name", "null"]`, `["==", "$note", "it's"]`, `["==", "$note", "50% off"]`,
	`["and"]`, `["and", []]`, `["and", ["and"]]`, `["==", "$gpu"]`, `["==", "gpu", "a100"]`, `["==", "$", "a100"]`, `["==", "$gpu", null]`, `["==", "$gpu", ["a100"]]`,
	`{"==": 1}`, `5`, `"x"`, `true`, `[["==", "$gpu", "a100"]]`, `["==", "$gpu", "a100"`, `["~", "$gpu", "a100"]`, `["and", ["==", "$nosuch", "1"]]`, `["AND", ["==", "$gpu", "a100"]]`,
}

// A query selects the hosts that Blazar's own code selects for it, except where docs/blazar.md lists otherwise;
// where Blazar refuses it, Almanac refuses it or understands more.
//
//make:test-blazar-queries
func TestQueriesSelectTheHostsThatBlazarSelects(t *testing.T) {
	if os.Getenv("ALMANAC_TEST_BLAZAR") == "" {
		t.Skip("make test-blazar-queries runs it")
	}
	pairs := make([][2]expression, 0, 200)
	for seed := range cap(pairs) {
		pairs = append(pairs, [2]expression{expressions.Example(2 * seed), expressions.Example(2*seed + 1)})
	}
	for _, e := range traps {
		pairs = append(pairs, [2]expression{e, {}})
	}
	for _, query := range alike {
		pairs = append(pairs, [2]expression{{query, query}, {}})
	}
	var queries [][2]string
	for _, p := range pairs {
		queries = append(queries, [2]string{p[0].query, p[1].query}, [2]string{p[0].asked, p[1].asked})
	}
	hosts, rows := rack(t)
	var said []any
	labtest.AskPython(t, "testdata/oracle.py", map[string]any{"database": labtest.Database(t), "hosts": rows, "queries": queries}, &said)

	count := make(map[string]int)
	for n, p := range pairs {
		got, literally, asked := hostsOf(t, hosts, p[0].query, p[1].query), said[2*n], said[2*n+1]
		switch trap := slices.Contains(traps, p[0]); {
		case trap && cmp.Equal(literally, got):
			t.Errorf("%s is no trap: both say %v", p[0].query, got)
		case p[0].asked == refused && got != refused:
			t.Errorf("%s is not refused: %v", p[0].query, got)
		case p[0].asked == refused:
			if _, error := literally.(string); error {
				t.Errorf("%s is no trap: Blazar fails with %v", p[0].query, literally)
			}
		default:
			if _, error := asked.(string); error {
				asked = refused
			}
			if d := cmp.Diff(asked, got); d != "" {
				t.Errorf("%s and %s select (-Blazar, asked for %s and %s, +Almanac):\n%s", p[0].query, p[1].query, p[0].asked, p[1].asked, d)
			}
			count[kindOf(literally, asked)]++
		}
	}
	t.Log(count)
	for kind, least := range map[string]int{"no hosts": 50, "some hosts": 50, "refused": 20, "others than Blazar selects": 20} {
		if count[kind] < least {
			t.Errorf("too few queries have the result %q: %v", kind, count)
		}
	}
}

// kindOf returns the kind of the right answer.
func kindOf(literally, right any) string {
	list, _ := right.([]any)
	switch _, error := literally.(string); {
	case right == refused:
		return "refused"
	case !error && !cmp.Equal(literally, right):
		return "others than Blazar selects"
	case len(list) == 0:
		return "no hosts"
	}
	return "some hosts"
}

// hostsOf returns the numbers of the hosts that Almanac selects for both queries, as if read from JSON;
// or refused.
func hostsOf(t *testing.T, hosts *inventory.Snapshot, queries ...string) any {
	t.Helper()
	written, err := blazar.Filter(hosts, queries...)
	if err != nil {
		if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "Malformed requirements ") {
			t.Errorf("%q: %v", queries, err)
		}
		return refused
	}
	filter, err := inventory.ParseFilter([]byte(written), hosts, true)
	if err != nil {
		t.Fatalf("%q became %s: %v", queries, written, err)
	}
	selected := []any{}
	for _, h := range hosts.Hosts() {
		if filter.Matches(h, true) {
			selected = append(selected, float64(h.Number))
		}
	}
	return selected
}
