// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"maps"
	"slices"
	"strings"
)

// named returns the traits and resource classes of Almanac that the layout names.
func (l Layout) named() (traits, classes []string) {
	t, c := map[string]bool{}, map[string]bool{}
	for _, of := range l.Traits {
		for _, trait := range of {
			t[trait] = true
		}
	}
	for _, of := range l.Rooms {
		for class := range of {
			c[class] = true
		}
	}
	note := func(specs map[string]string) {
		for key := range specs {
			switch kind, name, _ := strings.Cut(key, ":"); {
			case kind == "trait" && strings.HasPrefix(name, OwnPrefix):
				t[name] = true
			case kind == "resources" && strings.HasPrefix(name, OwnPrefix):
				c[name] = true
			}
		}
	}
	for _, a := range l.Aggregates {
		note(a.Metadata)
	}
	for _, f := range l.Flavors {
		note(f.ExtraSpecs)
		t[Closed] = true // for the next flavor
	}
	return sorted(t), sorted(c)
}

func members(l Layout) map[string][]string {
	hosts := map[string][]string{}
	for name, a := range l.Aggregates {
		hosts[name] = a.Hosts
	}
	return hosts
}

// lacking returns, for each key, the values of a that are not in b; keys without such values are
// left out.
func lacking(a, b map[string][]string) map[string][]string {
	less := map[string][]string{}
	for key := range a {
		if rest := without(a[key], b[key]); len(rest) > 0 {
			less[key] = rest
		}
	}
	return less
}

func without(list, others []string) (rest []string) {
	for _, each := range slices.Sorted(slices.Values(list)) {
		if !slices.Contains(others, each) {
			rest = append(rest, each)
		}
	}
	return rest
}

// differing returns the pairs of want that are not in have.
func differing(want, have map[string]string) map[string]string {
	wrong := map[string]string{}
	for key, value := range want {
		if is, there := have[key]; !there || is != value {
			wrong[key] = value
		}
	}
	return wrong
}

func union[T any](a, b map[string]T) map[string]T {
	both := maps.Clone(a)
	if both == nil {
		return b
	}
	maps.Copy(both, b)
	return both
}

func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

func pairs(m map[string]string) string {
	list := make([]string, 0, len(m))
	for _, key := range sorted(m) {
		list = append(list, key+"="+m[key])
	}
	return strings.Join(list, ", ")
}
