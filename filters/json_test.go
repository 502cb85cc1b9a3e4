// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// The golden file holds the answers of Nova's JsonFilter for one host. Almanac does not
// know the values that Nova takes from the host's statistics.
func TestQueriesAnswerAsNovas(t *testing.T) {
	text, err := os.ReadFile("testdata/json_filter.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Cases [][2]any }
	if err := json.Unmarshal(text, &golden); err != nil || len(golden.Cases) != 24 {
		t.Fatalf("%d cases: %v", len(golden.Cases), err)
	}
	s := states(t, []inventory.HostState{{
		Name: "h1", Node: "n1", Instances: make([]inventory.Instance, 3), Stocks: map[string]inventory.Stock{
			"VCPU": {Total: 8, Used: 2}, "MEMORY_MB": {Total: 1024}, "DISK_GB": {Total: 2},
		},
	}})
	for _, tc := range golden.Cases {
		query, want := tc[0].(string), "h1"
		r := asking(query)
		if tc[1] != true { // false, or an exception
			want = ""
		}
		if strings.Contains(query, "$stats") {
			checkBeyond(t, filters.JSON{}, s, r, "$stats.k, which Nova's API does not return")
			continue
		}
		if got, why := left(t, filters.JSON{}, s, r, 0); got != want {
			t.Errorf("%s: %q passes, want %v: %v", query, got, tc[1], why)
		}
		checkBeyond(t, filters.JSON{}, s, r, "")
	}
}

func asking(query ...string) placing.Request {
	return placing.Request{Hints: map[string][]string{"query": query}}
}

func TestAQueryWithoutAnAnswerRefusesAllHosts(t *testing.T) {
	deep := strings.Repeat(`["not", `, 300) + "1" + strings.Repeat("]", 300)
	rows := []inventory.HostState{
		{Name: "a", Node: "a", HypervisorType: "QEMU", HypervisorVersion: 5},
		{Name: "b", Node: "b", HypervisorType: "QEMU", HypervisorVersion: 5, Stocks: map[string]inventory.Stock{"DISK_GB": {Total: 1}}},
		{Name: "c", Node: "c"},
	}
	checkRules(t, states(t, rows), map[string]rule{
		"none":                     {filters.JSON{}, asking(), "a,b,c", nil},
		"an empty one":             {filters.JSON{}, asking(""), "a,b,c", nil},
		"several":                  {filters.JSON{}, asking("[]", "[]"), "", map[string]string{"a": "the hint query needs one value"}},
		"no JSON":                  {filters.JSON{}, asking("free_ram_mb > 5"), "", map[string]string{"c": "it is not JSON"}},
		"what is no JSON to all":   {filters.JSON{}, asking(`["=", NaN, 1]`), "", map[string]string{"a": "it is not JSON"}},
		"more than one":            {filters.JSON{}, asking(`[] []`), "", map[string]string{"a": "there is more after its JSON"}},
		"no list":                  {filters.JSON{}, asking(`{"a": 1}`), "", map[string]string{"a": "it is not a list"}},
		"an unknown operator":      {filters.JSON{}, asking(`["and", ["~", 1]]`), "", map[string]string{"b": "there is no operator ~"}},
		"a part of a text":         {filters.JSON{}, asking(`["=", "$host.x", 1]`), "", map[string]string{"a": "host of a host has no parts"}},
		"a text and a number":      {filters.JSON{}, asking(`["or", true, ["<", "$host", 5]]`), "", map[string]string{"c": "a text and a number have no order"}},
		"a host without an answer": {filters.JSON{}, asking(`["or", ["=", "$host", "a"], ["<", "$hypervisor_version", "x"]]`), "", map[string]string{"c": "a number and a text have no order"}},
		"what is not told":         {filters.JSON{}, asking(`["=", "$total_usable_disk_gb", 1]`), "b", map[string]string{"a": "$total_usable_disk_gb, which Nova's API does not return"}},
		"too deep":                 {filters.JSON{}, asking(deep), "", map[string]string{"a": "nested more than 200 deep"}},
		"too many digits":          {filters.JSON{}, asking(`["=", ` + strings.Repeat("1", 5000) + `, 1]`), "", map[string]string{"a": "more than 4300 digits"}},
		"of a forced host":         {filters.JSON{}, placing.Request{Hints: asking("[").Hints, ForceHosts: []string{"a"}}, "a,b,c", nil},
		"of a rebuild":             {filters.JSON{}, placing.Request{Hints: asking("[").Hints, Rebuild: true}, "a,b,c", nil},
	})
	checkBeyond(t, filters.JSON{}, states(t, rows), asking(`["=", "$total_usable_disk_gb", 1]`), "$total_usable_disk_gb")
	checkBeyond(t, filters.JSON{}, states(t, rows), asking(`["=", "$pci_stats.x", 1]`), "$pci_stats.x, which Nova's API does not return")
	checkBeyond(t, filters.JSON{}, states(t, rows), asking("["), "")
}
