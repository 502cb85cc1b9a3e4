// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

func TestAWrongFilterIsRefusedWithTheOffendingPart(t *testing.T) {
	s := cluster(t)
	for name, tc := range map[string]struct {
		filter string
		want   []string // parts of the message
	}{
		"not JSON":                    {`["=", "$vcpus" 8]`, []string{`["=", "$vcpus" 8]`, "not JSON"}},
		"not JSON in the string":      {`"$vcpus >= 8"`, []string{"$vcpus >= 8", "not JSON"}},
		"a string in the string":      {`"\"[]\""`, []string{`"[]"`, "not an expression"}},
		"an empty list":               {"[]", []string{"[] is not an expression", `write "" for every host`}},
		"an empty list in the string": {`"[]"`, []string{"[] is not an expression"}},
		"an object":                   {`{"vcpus": 8}`, []string{`{"vcpus":8}`, "not an expression"}},
		"a number":                    {`8`, []string{"8", "not an expression"}},
		"false":                       {`false`, []string{"false", "not an expression"}},
		"two expressions":             {`["=", "$vcpus", 8] ["=", "$vcpus", 8]`, []string{"not JSON"}},
		"an unknown operator":         {`["nott", ["=", 1, 1]]`, []string{`"nott"`, `did you mean "not"`, "= == != < <= > >= in not and or"}},
		"an operator in capitals":     {`["AND", ["=", 1, 1]]`, []string{`"AND"`}},
		"no operator":                 {`[["=", 1, 1], ["=", 1, 1]]`, []string{`begins with ["=",1,1]`}},
		"a number for an operator":    {`["and", [1, 2]]`, []string{`[1,2] begins with 1`}},
		"an empty list inside":        {`["and", []]`, []string{"[] is not an expression"}},
		"a comparison of nothing":     {`["="]`, []string{`["="] has 0 arguments`, "= takes exactly two"}},
		"a comparison of one":         {`["<", "$vcpus"]`, []string{`["<","$vcpus"] has 1 argument;`, "exactly two"}},
		"a comparison of three":       {`[">=", "$vcpus", 1, 2]`, []string{"has 3 arguments", "exactly two"}},
		"in of one":                   {`["in", "$vcpus"]`, []string{"has 1 argument", "two or more"}},
		"not of none":                 {`["not"]`, []string{"has 0 arguments", "exactly one"}},
		"not of two":                  {`["not", ["=", 1, 1], ["=", 1, 1]]`, []string{"has 2 arguments", "exactly one"}},
		"and of none":                 {`["and"]`, []string{"has 0 arguments", "one or more"}},
		"or of none":                  {`["or"]`, []string{"has 0 arguments", "one or more"}},
		"and of a bool":               {`["and", true, ["=", 1, 1]]`, []string{"true to and"}},
		"not of a property":           {`["not", "$nvme"]`, []string{`"$nvme" to not`}},
		"a number and a string":       {`["=", "$vcpus", "8"]`, []string{"$vcpus, which is a number", `"8", which is a string`}},
		"a string and a number":       {`["=", "$gpu", 100]`, []string{"$gpu, which is a string", "100, which is a number"}},
		"a number and a bool":         {`["=", 1, true]`, []string{"1, which is a number", "true, which is a bool"}},
		"two properties of two types": {`["=", "$rack", "$gpu"]`, []string{"$rack", "$gpu"}},
		"mixed types, property last":  {`["<", "8", "$vcpus"]`, []string{`"8", which is a string`}},
		"in of mixed types":           {`["in", "$rack", 1, "2"]`, []string{`"2", which is a string`}},
		"a number in a list property": {`["in", 1, "$traits"]`, []string{"$traits, which is a list"}},
		"a list compared":             {`["=", "$traits", "HW_GPU"]`, []string{`$traits, which is a list`, `["in", "…", "$traits"]`}},
		"two lists compared":          {`["=", "$traits", "$aggregates"]`, []string{"$traits, which is a list"}},
		"a list looked for":           {`["in", "$traits", "HW_GPU"]`, []string{"$traits, which is a list"}},
		"bools ordered":               {`["<", "$nvme", true]`, []string{"$nvme, which is a bool"}},
		"a number beyond 2^53":        {`["=", "$rack", 9007199254740993]`, []string{"9007199254740993 is too large to be compared exactly", "in quotes"}},
		"the same in the string":      {`"[\"<\", \"$rack\", -9007199254740993]"`, []string{"-9007199254740993 is too large"}},
		"two lists that are equal":    {`["!=", "$traits", "$traits"]`, []string{"$traits, which is a list"}},
		"null":                        {`["=", "$gpu", null]`, []string{"compares null"}},
		"a literal list":              {`["in", "$gpu", ["a", "b"]]`, []string{`compares ["a","b"]`}},
		"an expression compared":      {`["=", ["=", 1, 1], true]`, []string{`compares ["=",1,1]`}},
		"an object compared":          {`["=", "$gpu", {"a": 1}]`, []string{`compares {"a":1}`}},
		"a property without a name":   {`["=", "$", 1]`, []string{`["=","$",1]`}},
		"mixed types beside unknown":  {`["in", "$nosuch", 1, "a"]`, []string{"1, which is a number"}},
		"a number out of range":       {`["=", "$vcpus", 1e999]`, []string{"1e999", "too large"}},
		"deep in the expression":      {`["and", ["=", 1, 1], ["or", ["not", ["xor", 1]]]]`, []string{`["xor",1]`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := inventory.ParseFilter([]byte(tc.filter), s, false)
			if err == nil {
				t.Fatal("accepted")
			}
			got := fault.Of(err)
			if got.Kind != fault.Invalid || got.Field != "host_properties" {
				t.Errorf("got kind %q, field %q", got.Kind, got.Field)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Message, want) {
					t.Errorf("message %q does not contain %q", got.Message, want)
				}
			}
		})
	}
}

func TestTheSizeOfAFilterIsLimited(t *testing.T) {
	s := cluster(t)
	nested := func(depth int) string {
		return strings.Repeat(`["not", `, depth-1) + `["=", 1, 1]` + strings.Repeat("]", depth-1)
	}
	listing := func(parts int) string { // returns the expression and its arguments
		return `["in"` + strings.Repeat(", 1", parts-1) + "]"
	}
	long := func(bytes int) string {
		const before, after = `["=", "$gpu", "`, `"]`
		return before + strings.Repeat("x", bytes-len(before)-len(after)) + after
	}
	for name, tc := range map[string]struct {
		filter string
		wantOK bool
	}{
		"64 deep":                 {nested(64), true},
		"65 deep":                 {nested(65), false},
		"deeper than JSON may be": {nested(20_000), false},
		"256 parts":               {listing(256), true},
		"257 parts":               {listing(257), false},
		"257 parts, by and":       {`["and"` + strings.Repeat(`, ["=", 1, 1]`, 85) + `, ["not", ["=", 1, 1]]]`, false},
		"16 KiB":                  {long(16 << 10), true},
		"more than 16 KiB":        {long(16<<10 + 1), false},
		"blanks count":            {strings.Repeat(" ", 16<<10) + `["=", 1, 1]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := inventory.ParseFilter([]byte(tc.filter), s, false)
			if tc.wantOK && err != nil {
				t.Errorf("refused: %v", err)
			}
			if !tc.wantOK && !fault.Is(err, fault.Invalid) {
				t.Errorf("got %v, want an invalid fault", err)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

// traited returns a snapshot of hosts with a hundred traits each, as libvirt reports.
func traited(t *testing.T, hosts int) *inventory.Snapshot {
	t.Helper()
	traits := make([]string, 100)
	for i := range traits {
		traits[i] = fmt.Sprintf("HW_CPU_X86_FEATURE_%03d", i)
	}
	list := make([]inventory.Host, hosts)
	for i := range list {
		list[i] = inventory.Host{Name: fmt.Sprintf("h%04d", i), Traits: traits}
	}
	return snapshotOf(t, list...)
}

// An expression costs 1 step, a value or a property 1, and a list of a hundred 7 more.
func TestTheWorkOfAFilterIsLimited(t *testing.T) {
	each := func(n int) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, `, ["in", "HW_CPU_X86_FEATURE_%03d", "$traits"]`, i)
		}
		return `["and"` + text.String() + "]"
	}
	for name, tc := range map[string]struct {
		hosts  int
		filter string
		want   string // a part of the message; empty if the filter is accepted
	}{
		"as much as is allowed":                 {1000, each(60), ""},
		"on more hosts than that":               {2000, each(60), "needs 1202000 steps, 601 on each of 2000 hosts; at most 1000000 are allowed"},
		"by fewer expressions on as many":       {2000, each(40), ""},
		"the same list again and again":         {10_000, `["in", "HW_CPU_X86_FEATURE_XYZ"` + strings.Repeat(`, "$traits"`, 250) + "]", ""},
		"the same value again and again":        {10_000, `["in", "$name"` + strings.Repeat(`, "h0001"`, 250) + "]", ""},
		"the same expression again and again":   {10_000, `["or"` + strings.Repeat(`, ["=", "$name", "h"]`, 80) + "]", "needs 2410000 steps"},
		"an expression that is never looked at": {10_000, `["and", ["=", 1, 2]` + strings.Repeat(`, ["=", "$name", "h"]`, 80) + "]", "needs 2440000 steps"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := inventory.ParseFilter([]byte(tc.filter), traited(t, tc.hosts), false)
			if tc.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if got := fault.Of(err); tc.want != "" && (!fault.Is(err, fault.Invalid) || got.Field != "host_properties" || !strings.Contains(got.Message, tc.want)) {
				t.Errorf("got %v, want an invalid fault with %q", err, tc.want)
			}
		})
	}
}

func TestTheFilterOfAReservationIsReadWhateverItsSize(t *testing.T) {
	s := traited(t, 9_000)
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("%q", fmt.Sprintf("h%04d", i))
	}
	filter := `["in", "$name", ` + strings.Join(names, ", ") + "]"
	f, err := inventory.ParseStoredFilter([]byte(filter), s, false)
	if err != nil {
		t.Fatal(err)
	}
	if !f.Matches(s.Host(999), false) || f.Matches(s.Host(1000), false) {
		t.Error("the filter matches other hosts than it names")
	}
	if _, err := inventory.ParseStoredFilter([]byte(filter), traited(t, 10_000), false); !fault.Is(err, fault.Invalid) {
		t.Errorf("with more than ten times the steps of a request: %v, want an invalid fault", err)
	}
}

func FuzzParseFilter(f *testing.F) {
	for _, seed := range []string{
		"", "null", `""`, "[]", "[[]]", `["="]`, `["nope", 1]`, `["=", "$free_ram_mb", 1024]`, `["in", "ib", "$networks", "x"]`,
		`"[\"=\", \"$gpu\", \"a100\"]"`, `["not", ["or", ["!=", "$rack", 3], ["<", "$name", "$zone"]]]`, `["=", "$", {"a": [null]}]`,
	} {
		f.Add([]byte(seed))
	}
	s := cluster(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		filter, err := inventory.ParseFilter(raw, s, true)
		if err != nil {
			if got := fault.Of(err); got.Kind != fault.Invalid || got.Field != "host_properties" || got.Message == "" {
				t.Errorf("%q: %#v", raw, got)
			}
			return
		}
		if hosts := matched(filter, s, false); len(filter.Unknown()) > 0 && hosts != "" {
			t.Errorf("%q names unknown %v and matches %q", raw, filter.Unknown(), hosts)
		}
	})
}
