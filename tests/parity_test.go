// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/weighers"
)

const parityPath = "../docs/parity.md"

// novaHas prints the names of all that Debian's Nova has, by chapter.
const novaHas = `
import json
import nova.conf
from nova.scheduler import filters, request_filter, weights
print(json.dumps({
    "Request filters": [f.__name__ for f in request_filter.ALL_REQUEST_FILTERS],
    "Filters": [f.__name__ for f in filters.all_filters()],
    "Weighers": [w.__name__ for w in weights.all_weighers()],
}))`

// parity returns the word that each row of a chapter has for a name.
func parity(t *testing.T, chapter string) map[string]string {
	t.Helper()
	_, text, _ := strings.Cut(readText(t, parityPath), "\n## "+chapter+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	_, text, _ = strings.Cut(text, "|---|---|---|\n")
	said := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `?([^|`]+)`? \\| ([^|]*) \\|").FindAllStringSubmatch(text, -1) {
		name, word := row[1], row[2]
		if _, twice := said[name]; twice {
			t.Errorf("%s: %s has two rows", chapter, name)
		}
		said[name] = word
	}
	return said
}

func names(said map[string]string) []string { return slices.Sorted(maps.Keys(said)) }

// ownWeighers lists the weighers that Nova does not have.
var ownWeighers = []string{
	"FreeTimeWeigher", "KWRankingWeigher", "OvercommitWeigher", "PreemptionCostWeigher", "PeriodWeigher", "PreemptibleCountWeigher",
}

func TestParityTellsOfAllFiltersAndWeighers(t *testing.T) {
	if diff := cmp.Diff(slices.Sorted(slices.Values(filters.Names())), names(parity(t, "Filters"))); diff != "" {
		t.Errorf("filters (-code +parity):\n%s", diff)
	}
	all, err := weighers.Choose([]string{weighers.AllWeighers}, nil, weighers.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, w := range all {
		if !slices.Contains(ownWeighers, w.Name()) {
			have = append(have, w.Name())
		}
	}
	slices.Sort(have)
	if diff := cmp.Diff(have, names(parity(t, "Weighers"))); diff != "" {
		t.Errorf("weighers (-code +parity):\n%s", diff)
	}
}

func TestEveryRowOfParitySaysOneOfThreeWords(t *testing.T) {
	for _, chapter := range []string{"Request filters", "From the request to the answer", "Filters", "Weighers", "Operations"} {
		said := parity(t, chapter)
		for name, word := range said {
			if !slices.Contains([]string{"same", "passed on", "different"}, word) {
				t.Errorf("%s: %s is %q", chapter, name, word)
			}
		}
		if len(said) < 8 {
			t.Errorf("%s has %d rows", chapter, len(said))
		}
	}
}
