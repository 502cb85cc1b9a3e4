// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// cluster returns three hosts: a is a GPU host half in use, b has no GPU, and most facts
// about c are unknown.
func cluster(t testing.TB) *inventory.Snapshot {
	t.Helper()
	s, err := inventory.NewSnapshot([]inventory.Host{
		{
			Name: "a", Zone: "az1", Aggregates: []string{"fast", "gpu"}, Traits: []string{"HW_GPU"}, FlopsPerWatt: 2e9,
			Capacity: resource.Vector{VCPUs: 32, MemoryMB: 131072, DiskGB: 100},
			Used:     resource.Vector{VCPUs: 16, MemoryMB: 65536, DiskGB: 40},
			Properties: properties{
				"gpu": inventory.StringValue("a100"), "rack": inventory.NumberValue(3), "nvme": inventory.BoolValue(true),
				"networks": inventory.ListValue([]string{"ib", "eth"}), "owner": inventory.StringValue("physics"),
			},
		},
		{
			Name: "b", Zone: "az2", Aggregates: []string{"fast"}, FlopsPerWatt: 1e9,
			Capacity:   resource.Vector{VCPUs: 8, MemoryMB: 16384, DiskGB: 10},
			Properties: properties{"rack": inventory.NumberValue(4), "nvme": inventory.BoolValue(false)},
		},
		{Name: "c", Capacity: resource.Vector{VCPUs: 4, MemoryMB: 4096}},
	}, nil, map[string]bool{"owner": true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// matched returns the names of the hosts that the filter matches, as one word.
func matched(f *inventory.Filter, s *inventory.Snapshot, ahead bool) string {
	var hosts strings.Builder
	for _, h := range s.Hosts() {
		if f.Matches(h, ahead) {
			hosts.WriteString(h.Name)
		}
	}
	return hosts.String()
}

func TestAFilterMatches(t *testing.T) {
	s := cluster(t)
	for name, tc := range map[string]struct {
		filter string
		want   string
	}{
		"every host, by nothing":          {"", "abc"},
		"every host, by null":             {"null", "abc"},
		"every host, by an empty string":  {`""`, "abc"},
		"the list in a string":            {`"[\"=\", \"$zone\", \"az1\"]"`, "a"},
		"the empty string in a string":    {`"  "`, "abc"},
		"the design's example":            {`["and", [">=", "$memory_mb", 65536], ["=", "$gpu", "a100"]]`, "a"},
		"equal numbers":                   {`["=", "$vcpus", 8]`, "b"},
		"a number is a number":            {`["==", "$vcpus", 8.0e0]`, "b"},
		"not equal":                       {`["!=", "$vcpus", 8]`, "ac"},
		"less":                            {`["<", "$vcpus", 8]`, "c"},
		"less or equal":                   {`["<=", "$vcpus", 8]`, "bc"},
		"more":                            {`[">", "$vcpus", 8]`, "a"},
		"more or equal":                   {`[">=", "$vcpus", 8]`, "ab"},
		"numbers are not ordered as text": {`[">", "$vcpus", 10]`, "a"},
		"strings by their bytes":          {`["<", "$name", "b"]`, "a"},
		"the literal first":               {`["<", 8, "$vcpus"]`, "a"},
		"two properties":                  {`["<", "$free_ram_mb", "$memory_mb"]`, "a"},
		"bools":                           {`["=", "$nvme", true]`, "a"},
		"two literals":                    {`["=", 1, 1]`, "abc"},
		"in literals":                     {`["in", "$name", "a", "c"]`, "ac"},
		"in numbers":                      {`["in", "$rack", 4, 5]`, "b"},
		"in a list property":              {`["in", "fast", "$aggregates"]`, "ab"},
		"in a list property of its own":   {`["in", "ib", "$networks"]`, "a"},
		"in lists and literals":           {`["in", "$zone", "$aggregates", "az2"]`, "b"},
		"in repeated literals":            {`["in", "$name", "a", "a", "c", "a"]`, "ac"},
		"in a trait":                      {`["in", "HW_GPU", "$traits"]`, "a"},
		"not in":                          {`["not", ["in", "fast", "$aggregates"]]`, "c"},
		"or":                              {`["or", ["=", "$name", "a"], ["=", "$name", "c"]]`, "ac"},
		"and of one":                      {`["and", ["=", "$name", "a"]]`, "a"},
		"unlike Nova, not inside and":     {`["and", ["not", ["=", 1, 1]]]`, ""},
		"more efficient":                  {`[">", "$flops_per_watt", 1.5e9]`, "a"},

		"absent here, equal":              {`["=", "$gpu", "a100"]`, "a"},
		"absent here, not equal":          {`["!=", "$gpu", "a100"]`, "bc"},
		"absent here, under not":          {`["not", ["=", "$gpu", "a100"]]`, "bc"},
		"absent here, ordered":            {`["<", "$rack", 100]`, "ab"},
		"absent here, ordered under not":  {`["not", ["<", "$rack", 100]]`, "c"},
		"absent here does not equal self": {`["=", "$gpu", "$gpu"]`, "a"},
		"absent here, in":                 {`["in", "$gpu", "a100", "h100"]`, "a"},
		"absent here, among the rest":     {`["in", "a100", "$gpu"]`, "a"},
		"unknown efficiency is absent":    {`["<=", "$flops_per_watt", 5e9]`, "ab"},
		"a host without zone":             {`["!=", "$zone", "az1"]`, "bc"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := inventory.ParseFilter([]byte(tc.filter), s, false)
			if err != nil {
				t.Fatal(err)
			}
			if got := matched(f, s, false); got != tc.want {
				t.Errorf("%s matches %q, want %q", tc.filter, got, tc.want)
			}
			if got := matched(f, s, true); !f.Timely() && got != tc.want {
				t.Errorf("%s for a start ahead matches %q, want %q as for now", tc.filter, got, tc.want)
			}
			if unknown := f.Unknown(); len(unknown) > 0 {
				t.Errorf("got the unknown properties %v, want none", unknown)
			}
		})
	}
}

func TestFreeMeansCapacityWhenTheStartLiesAhead(t *testing.T) {
	s := cluster(t)
	for filter, want := range map[string]struct{ now, ahead string }{
		`[">=", "$free_ram_mb", 65537]`:  {"", "a"},
		`[">=", "$free_ram_mb", 65536]`:  {"a", "a"},
		`["=", "$free_disk_mb", 61440]`:  {"a", ""},
		`["=", "$free_disk_mb", 102400]`: {"", "a"},
	} {
		f, err := inventory.ParseFilter([]byte(filter), s, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := matched(f, s, false); got != want.now {
			t.Errorf("%s for now matches %q, want %q", filter, got, want.now)
		}
		if got := matched(f, s, true); got != want.ahead {
			t.Errorf("%s for a start ahead matches %q, want %q", filter, got, want.ahead)
		}
		if !f.Timely() {
			t.Errorf("%s should depend on the time, but is reported as independent of it", filter)
		}
	}
}

func TestAComparisonWithoutAPropertyIsNamedByItsFirstText(t *testing.T) {
	s := cluster(t)
	for filter, want := range map[string]string{
		`["=", "gpu", "a100"]`:                                   "gpu",
		`["in", "az1", "zone"]`:                                  "az1",
		`["and", ["=", "$name", "a"], ["not", [">", "x", "y"]]]`: "x",
		`["=", "$name", "a"]`:                                    "",
		`["=", "a", "$name"]`:                                    "",
		`["in", "a", "$name", "b"]`:                              "",
		`["=", 1, 1]`:                                            "",
	} {
		f, err := inventory.ParseFilter([]byte(filter), s, true)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Bare(); got != want {
			t.Errorf("%s: %q, want %q", filter, got, want)
		}
	}
}

func TestAnUnknownPropertyMatchesNoHostAndIsNamed(t *testing.T) {
	s := cluster(t)
	for filter, want := range map[string][]string{
		`["=", "$nosuch", 1]`:          {"nosuch"},
		`["!=", "$nosuch", 1]`:         {"nosuch"},
		`["not", ["=", "$nosuch", 1]]`: {"nosuch"},
		`["or", ["=", "$name", "a"], ["in", "$z", "$y", "x"], ["<", "$y", 1]]`: {"y", "z"},
	} {
		f, err := inventory.ParseFilter([]byte(filter), s, true)
		if err != nil {
			t.Fatal(err)
		}
		if got := matched(f, s, false); got != "" {
			t.Errorf("%s matches %q", filter, got)
		}
		if diff := cmp.Diff(want, f.Unknown()); diff != "" {
			t.Errorf("%s unknown (-want +got):\n%s", filter, diff)
		}
	}
}

func TestAHiddenPropertyIsUnknownToThoseWhoMayNotSeeIt(t *testing.T) {
	s := cluster(t)
	// The type is wrong. Only those who may see the property may learn that.
	const ill = `["=", "$owner", 1]`
	if _, err := inventory.ParseFilter([]byte(ill), s, true); !fault.Is(err, fault.Invalid) {
		t.Errorf("the admin's filter of the wrong type returns %v", err)
	}
	f, err := inventory.ParseFilter([]byte(ill), s, false)
	if err != nil {
		t.Fatalf("the error reveals the type of a hidden property: %v", err)
	}
	if diff := cmp.Diff([]string{"owner"}, f.Unknown()); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	const right = `["=", "$owner", "physics"]`
	for seesHidden, want := range map[bool]string{true: "a", false: ""} {
		f, err := inventory.ParseFilter([]byte(right), s, seesHidden)
		if err != nil {
			t.Fatal(err)
		}
		if got := matched(f, s, false); got != want {
			t.Errorf("may see hidden properties: %v; matches %q, want %q", seesHidden, got, want)
		}
	}
}

func TestAFilterOutlivesAChangeOfTypes(t *testing.T) {
	f, err := inventory.ParseFilter([]byte(`["<", "$rack", 9]`), cluster(t), false)
	if err != nil {
		t.Fatal(err)
	}
	later := snapshotOf(t, inventory.Host{Name: "a", Properties: properties{"rack": inventory.StringValue("3")}})
	if f.Matches(later.Host(0), false) {
		t.Error("a string is less than a number")
	}
}
