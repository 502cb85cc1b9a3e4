// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// matched returns the answer of filters.Match in the words of the recorded answers of Nova.
func matched(value, asked string) any {
	switch is, err := filters.Match(value, asked); {
	case err != nil:
		return "error"
	default:
		return is
	}
}

func TestExtraSpecsCompareAsInNova(t *testing.T) {
	text, err := os.ReadFile("testdata/extra_specs_ops.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden [][3]any
	if err := json.Unmarshal(text, &golden); err != nil || len(golden) != 19 {
		t.Fatalf("%d cases: %v", len(golden), err)
	}
	for _, tc := range golden {
		value, is := tc[0].(string)
		if !is {
			continue // the filter refuses a host without the value before it compares
		}
		want := tc[2]
		if word, is := want.(string); is && strings.HasPrefix(word, "EXC") {
			want = "error"
		}
		if got := matched(value, tc[1].(string)); got != want {
			t.Errorf("%q against %q: %v, want %v", value, tc[1], got, want)
		}
	}
}

func TestAnyExtraSpecComparesAsInNova(t *testing.T) {
	word := rapid.SampledFrom([]string{
		"=", "==", "!=", ">=", "<=", "s==", "s!=", "s<", "s<=", "s>", "s>=", "<in>", "<all-in>", "<or>", "<is>", "a", "ab", "b", "B", "é",
		"4", "4.0", "05", "10", "-3", "1e3", "1_0", "_1", "1__0", "0x10", "inf", "-Infinity", "nan", "1e999", ".5", "5.", "", " ", "\t", "\u00a0", "\x1f",
	})
	var matches [][2]string
	generator := rapid.Custom(func(t *rapid.T) [2]string {
		return [2]string{
			strings.Join(rapid.SliceOfN(word, 0, 2).Draw(t, "value"), " "),
			strings.Join(rapid.SliceOfN(word, 0, 6).Draw(t, "asked"), " "),
		}
	})
	for seed := range 5000 {
		matches = append(matches, generator.Example(seed))
	}
	var answers []string
	labtest.AskPython(t, "testdata/oracle.py", map[string]any{"matches": matches}, &answers)
	in := map[string]any{"yes": true, "no": false, "error": "error"}
	count := map[string]int{}
	for n, m := range matches {
		count[answers[n]]++
		if got := matched(m[0], m[1]); got != in[answers[n]] {
			t.Errorf("%q against %q: %v, Nova says %s", m[0], m[1], got, answers[n])
		}
	}
	for _, kind := range []string{"yes", "no", "error"} {
		if count[kind] < 50 {
			t.Errorf("only %d of %d answers are %s", count[kind], len(matches), kind)
		}
	}
}
