package inventory_test

import (
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
		"an object":                   {`{"vcpus": 8}`, []string{`{"vcpus":8}`, "not an expression"}},
		"a number":                    {`8`, []string{"8", "not an expression"}},
		"false":                       {`false`, []string{"false", "not an expression"}},
		"two expressions":             {`["=", "$vcpus", 8] ["=", "$vcpus", 8]`, []string{"not JSON"}},
		"an unknown operator":         {`["nott", ["=", 1, 1]]`, []string{`"nott"`, `did you mean "not"`, "= == != < <= > >= in not and or"}},
		"an operator in capitals":     {`["AND", ["=", 1, 1]]`, []string{`"AND"`}},
		"no operator":                 {`[["=", 1, 1], ["=", 1, 1]]`, []string{`begins with ["=",1,1]`}},
		"a number for an operator":    {`["and", [1, 2]]`, []string{`[1,2] begins with 1`}},
		"an empty list inside":        {`["and", []]`, []string{"[] stands"}},
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
				t.Errorf("kind %q, field %q", got.Kind, got.Field)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Message, want) {
					t.Errorf("message %q does not say %q", got.Message, want)
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
	listing := func(parts int) string { // the expression, and its arguments
		return `["in"` + strings.Repeat(", 1", parts-1) + "]"
	}
	for name, tc := range map[string]struct {
		filter string
		wantOK bool
	}{
		"64 deep":                    {nested(64), true},
		"65 deep":                    {nested(65), false},
		"deeper than JSON may be":    {nested(20_000), false},
		"10,000 parts":               {listing(10_000), true},
		"10,001 parts":               {listing(10_001), false},
		"10,001 parts, by and":       {`["and"` + strings.Repeat(`, ["=", 1, 1]`, 3334) + "]", false},
		"a long string is no matter": {`["=", "$gpu", "` + strings.Repeat("x", 100_000) + `"]`, true},
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
