// SPDX-License-Identifier: Apache-2.0

package source

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/tests/repository"
	"github.com/almanac-cloud/almanac/weighers"
)

func TestParityTellsOfAllFiltersAndWeighers(t *testing.T) {
	if diff := cmp.Diff(slices.Sorted(slices.Values(filters.Names())), slices.Sorted(maps.Keys(repository.Parity(t, "Filters")))); diff != "" {
		t.Errorf("filters (-code +parity):\n%s", diff)
	}
	all, err := weighers.Choose([]string{weighers.AllWeighers}, nil, weighers.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, w := range all {
		if !slices.Contains(weighers.Own(), w.Name()) {
			have = append(have, w.Name())
		}
	}
	slices.Sort(have)
	if diff := cmp.Diff(have, slices.Sorted(maps.Keys(repository.Parity(t, "Weighers")))); diff != "" {
		t.Errorf("weighers (-code +parity):\n%s", diff)
	}
}

func TestEveryRowOfParitySaysOneOfThreeWords(t *testing.T) {
	for _, chapter := range []string{"Request filters", "From the request to the answer", "Filters", "Weighers", "Operations"} {
		said := repository.Parity(t, chapter)
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
