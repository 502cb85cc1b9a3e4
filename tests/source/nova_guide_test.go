// SPDX-License-Identifier: Apache-2.0

package source

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/tests/repository"
	"github.com/almanac-cloud/almanac/weighers"
)

// rows returns the first cells of the rows of a table whose first cell matches name, sorted, with a
// space between the cells.
func rows(t *testing.T, path, name, second string) (list []string) {
	t.Helper()
	pattern := regexp.MustCompile("(?m)^\\| `(" + name + ")` \\| " + second)
	for _, row := range pattern.FindAllStringSubmatch(repository.Read(t, path), -1) {
		list = append(list, strings.Join(row[1:], " "))
	}
	slices.Sort(list)
	return list
}

func TestTheGuideListsWhatIsPassedOn(t *testing.T) {
	_, list, _ := strings.Cut(repository.Read(t, repository.NovaPage), "## What replace passes on")
	list, _, _ = strings.Cut(list, "\n## ")
	var matters []string
	for _, m := range object.Matters() {
		matters = append(matters, m.What)
	}
	slices.Sort(matters)
	if diff := cmp.Diff(matters, repository.Matches(`(?m)^- (.+);$`, list)); diff != "" {
		t.Errorf("(-code +guide):\n%s", diff)
	}
}

func TestTheGuideListsTheFilters(t *testing.T) {
	var have []string
	for _, name := range filters.Names() {
		enabled := "no"
		if slices.Contains(filters.Enabled, name) {
			enabled = "yes"
		}
		have = append(have, name+" "+enabled)
	}
	slices.Sort(have)
	if diff := cmp.Diff(have, rows(t, repository.NovaPage, `\w+(?:Filter|Isolation)`, `(yes|no)\b`)); diff != "" {
		t.Errorf("whether they are enabled (-code +guide):\n%s", diff)
	}
}

func TestTheGuideListsTheWeighers(t *testing.T) {
	all, err := weighers.Choose([]string{weighers.AllWeighers}, nil, weighers.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, w := range all {
		option := "filter_scheduler " + w.Option
		if w.Name() == "MetricsWeigher" {
			option = "metrics weight_multiplier"
		}
		have = append(have, w.Name()+" "+option)
	}
	slices.Sort(have)
	if diff := cmp.Diff(have, rows(t, repository.NovaPage, `\w+Weigher`, "`\\[(\\w+)\\] (\\w+)`")); diff != "" {
		t.Errorf("and their multipliers (-code +guide):\n%s", diff)
	}
}
