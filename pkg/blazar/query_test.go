// SPDX-License-Identifier: Apache-2.0

package blazar_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// racks returns hosts. Each property is missing on some of them.
func racks(t *testing.T) *inventory.Snapshot {
	t.Helper()
	numbers := int64(0)
	host := func(name string, vcpus int64, zone string, properties map[string]inventory.Value) inventory.Host {
		numbers++
		return inventory.Host{
			Number: numbers, Name: name, Capacity: resource.Vector{VCPUs: vcpus, MemoryMB: 1024 * vcpus, DiskGB: 10 * vcpus}, Zone: zone, Properties: properties, Reservable: true,
		}
	}
	s, err := inventory.NewSnapshot([]inventory.Host{
		host("a", 8, "az1", map[string]inventory.Value{
			"gpu": inventory.StringValue("a100"), "slots": inventory.NumberValue(64), "ssd": inventory.BoolValue(true), "nets": inventory.ListValue([]string{"ib"}),
		}),
		host("b", 64, "az1", map[string]inventory.Value{"gpu": inventory.StringValue("v100"), "slots": inventory.NumberValue(128), "ssd": inventory.BoolValue(false)}),
		host("c", 128, "", nil),
		host("d", 16, "az2", map[string]inventory.Value{"secret": inventory.StringValue("x")}),
	}, nil, map[string]bool{"secret": true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// selected returns the hosts that a query selects, as one word; or the error.
func selected(t *testing.T, hosts *inventory.Snapshot, query any) (string, error) {
	t.Helper()
	reader := blazar.Reader{Now: noon, Hosts: hosts}
	body := blazar.Object{
		"name": "l", "start_date": "now", "end_date": "2026-11-20 13:00",
		"reservations": []any{map[string]any{"resource_type": "physical:host", "min": nil, "max": nil, "resource_properties": query}},
	}
	request, err := reader.Create(body)
	if err != nil {
		return "", err
	}
	filter, err := inventory.ParseFilter([]byte(request.Members[0].HostProperties), hosts, false)
	if err != nil {
		t.Fatalf("%v became %s: %v", query, request.Members[0].HostProperties, err)
	}
	var names strings.Builder
	for _, h := range hosts.Hosts() {
		if filter.Matches(h, true) {
			names.WriteString(h.Name)
		}
	}
	return names.String(), nil
}

var noon = span.Instant(1795176000) // 2026-11-20T12:00:00Z

func TestAQuerySelectsTheHostsThatItNames(t *testing.T) {
	hosts := racks(t)
	for query, want := range map[string]string{
		"": "abcd", "[]": "abcd", " ": "abcd", "null": "abcd", "None": "abcd",
		`["==", "$id", "2"]`:                                             "b",
		`[">=", "$id", 3]`:                                               "cd",
		`["==", "$gpu", "a100"]`:                                         "a",
		`["=", "$gpu", "a100"]`:                                          "a",
		`["==", "$gpu", "A100"]`:                                         "",
		`["!=", "$gpu", "a100"]`:                                         "b", // c and d lack it
		`["and", [">=", "$vcpus", "64"]]`:                                "bc",
		`[">", "$vcpus", "64"]`:                                          "c", // by number, not by text
		`["<", "$vcpus", 64]`:                                            "ad",
		`[">=", "$slots", "100"]`:                                        "b",
		`["==", "$slots", "64"]`:                                         "a",
		`["==", "$slots", "many"]`:                                       "",
		`["!=", "$slots", "many"]`:                                       "ab",
		`["==", "$ssd", "True"]`:                                         "a",
		`["==", "$ssd", "true"]`:                                         "a",
		`["==", "$ssd", true]`:                                           "a",
		`["!=", "$ssd", "True"]`:                                         "b",
		`["==", "$ssd", "yes"]`:                                          "",
		`["==", "$hypervisor_hostname", "c"]`:                            "c",
		`["==", "$service_name", "c"]`:                                   "c",
		`[">=", "$local_gb", "640"]`:                                     "bc",
		`["==", "$memory_mb", "8192"]`:                                   "a",
		`["==", "$availability_zone", "az1"]`:                            "ab",
		`["!=", "$availability_zone", "az1"]`:                            "d",
		`["==", "$reservable", "True"]`:                                  "abcd",
		`["!=", "$reservable", "True"]`:                                  "",
		`["==", "$reservable", "False"]`:                                 "",
		`["==", "$reservable", "1"]`:                                     "abcd", // as Blazar stores it
		`["==", "$reservable", "0"]`:                                     "",
		`["!=", "$reservable", "0"]`:                                     "abcd",
		`["==", "$ssd", "1"]`:                                            "",
		`["in", "$gpu", "a100", "v100", "h100"]`:                         "ab",
		`["in", "$slots", "64", "many"]`:                                 "a",
		`["in", "ib", "$nets"]`:                                          "a",
		`["not", ["in", "ib", "$nets"]]`:                                 "", // b, c and d lack it
		`["not", ["in", "eth", "$nets"]]`:                                "a",
		`["not", ["not", ["in", "ib", "$nets"]]]`:                        "a",
		`["not", ["in", "ib", "$nets", "$traits"]]`:                      "",
		`["not", ["in", "ib", "$traits"]]`:                               "abcd",
		`["or", ["==", "$gpu", "a100"], ["<", "$vcpus", "20"]]`:          "ad",
		`["not", ["==", "$gpu", "a100"]]`:                                "b",
		`["not", ["!=", "$gpu", "a100"]]`:                                "a",
		`["not", ["in", "$gpu", "a100"]]`:                                "b",
		`["not", ["and", ["==", "$gpu", "a100"], [">", "$vcpus", "1"]]]`: "b",
		`["not", ["or", [">", "$vcpus", "100"], ["<", "$vcpus", "10"]]]`: "bd",
		`["and", ["==", "$availability_zone", "az1"], ["and", ["==", "$gpu", "v100"], ["==", 1, 1]]]`: "error",
		`["and", ["==", "$availability_zone", "az1"], ["and", ["==", "$gpu", "v100"]]]`:               "b",
	} {
		got, err := selected(t, hosts, query)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s selects %q, want %q (%v)", query, got, want, err)
		}
	}
}

// As in Blazar, "True" is not "true".
func TestATextIsTheTruthValueThatACapabilitySpellsSo(t *testing.T) {
	for spelled, other := range map[string]string{"True": "true", "true": "True"} {
		override := inventory.Override{Capabilities: &inventory.Capabilities{Texts: map[string]string{"ssd": spelled}}}
		hosts, err := inventory.NewSnapshot([]inventory.Host{{Name: "a"}, {Name: "b"}}, map[string]inventory.Override{"a": override}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for query, want := range map[string]string{
			`["==", "$ssd", "` + spelled + `"]`: "a", `["==", "$ssd", "` + other + `"]`: "", `["!=", "$ssd", "` + spelled + `"]`: "", `["!=", "$ssd", "` + other + `"]`: "a",
			`["==", "$ssd", true]`: "a", `["==", "$ssd", false]`: "", `["in", "$ssd", "` + other + `", "x"]`: "", `["in", "$ssd", "` + other + `", true]`: "a",
		} {
			if got, err := selected(t, hosts, query); got != want || err != nil {
				t.Errorf("where true is spelled %s, %s selects %q, want %q (%v)", spelled, query, got, want, err)
			}
		}
	}
}

func TestAQueryMayBeAListInPlaceOfAText(t *testing.T) {
	got, err := selected(t, racks(t), []any{"==", "$gpu", "a100"})
	if err != nil || got != "a" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAWrongQueryIsMalformedRequirements(t *testing.T) {
	hosts := racks(t)
	deep := strings.Repeat(`["not", `, 40) + `["==", "$vcpus", "1"]` + strings.Repeat("]", 40)
	wide := `["or"` + strings.Repeat(`, ["!=", "$vcpus", "1"]`, 200) + "]"
	for query, says := range map[string]string{
		"vcpus == 8":                     "not JSON",
		`["==", "$vcpus", "1"] ["x"]`:    "more than one expression",
		`"[]"`:                           "not an expression",
		`{"a": 1}`:                       "not an expression",
		`["and"]`:                        "joins nothing",
		`["and", []]`:                    "not an expression",
		`["and", "x"]`:                   "not an expression",
		`["xor", "$vcpus", "1"]`:         "does not begin with an operator",
		`[1, "$vcpus", "1"]`:             "does not begin with an operator",
		`["==", "$vcpus"]`:               "compares a name",
		`["==", "vcpus", "1"]`:           "not the name of a property",
		`["==", 1, 1]`:                   "not the name of a property",
		`["==", "$", "1"]`:               "not the name of a property",
		`["==", "$vcpus", "$memory_mb"]`: "is a name",
		`["==", "$vcpus", null]`:         "not a value",
		`["==", "$vcpus", [1]]`:          "not a value",
		`["==", "$nosuch", "1"]`:         "no host has the property nosuch",
		`["==", "$secret", "x"]`:         "no host has the property secret",
		`["==", "$trust_id", "x"]`:       "not for queries",
		`["==", "$status", "x"]`:         "not for queries",
		`["<", "$ssd", "True"]`:          "does not order",
		`["<", "$vcpus", "many"]`:        "does not compare",
		`["==", "$traits", "X"]`:         "is a list",
		`["in", "X", "$gpu"]`:            "is not a list",
		`["in", "$gpu"]`:                 "in takes",
		`["not"]`:                        "not takes one",
		deep:                             "nests more than",
		wide:                             "has more than 256",
		strings.Repeat(" ", 20_000):      "at most 16384",
	} {
		_, err := selected(t, hosts, query)
		if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "Malformed requirements ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%.80s: got %v, want %q", query, err, says)
		}
		if err != nil && len(err.Error()) > 700 {
			t.Errorf("%.80s: the text has %d bytes", query, len(err.Error()))
		}
	}
}

// A query that is a conjunction of comparisons selects the hosts that each of them selects.
func TestAndIsTheHostsThatAllSelect(t *testing.T) {
	hosts := racks(t)
	parts := []string{`["==", "$gpu", "a100"]`, `["!=", "$gpu", "v100"]`, `[">=", "$vcpus", "16"]`, `["<", "$slots", "100"]`, `["!=", "$availability_zone", "az2"]`}
	for _, a := range parts {
		for _, b := range parts {
			one, _ := selected(t, hosts, a)
			two, _ := selected(t, hosts, b)
			want := strings.Map(func(r rune) rune {
				if strings.ContainsRune(two, r) {
					return r
				}
				return -1
			}, one)
			got, err := selected(t, hosts, `["and", `+a+", "+b+"]")
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s and %s: %v %s", a, b, err, diff)
			}
		}
	}
}
