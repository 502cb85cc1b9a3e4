// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// setAggregates sets the aggregates of each host, and their metadata as its properties. notes
// contains sentences about metadata that cannot become a property.
//
// A property is a number if it is one on all hosts that have it, otherwise a string. If two
// aggregates of a host have different values, that of the aggregate with the smaller name counts.
// Almanac's own aggregates are left out, because tenants must not learn who has reserved a host.
func setAggregates(hosts []inventory.Host, aggregates []inventory.Aggregate) (notes []string) {
	index := make(map[string]int, len(hosts))
	for i := range hosts {
		index[hosts[i].Name] = i
	}
	aggregates = slices.SortedFunc(slices.Values(aggregates), func(a, b inventory.Aggregate) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	texts := make([]map[string]string, len(hosts))
	words := map[string]bool{} // properties that are not numbers
	for _, a := range aggregates {
		if a.Name == fence.Aggregate || a.Name == fence.ImagesAggregate || strings.HasPrefix(a.Name, fence.AggregatePrefix) || fence.IsMirror(a) || fence.IsBlazars(a) {
			continue
		}
		metadata, builtIn := properties(a.Metadata)
		for _, key := range builtIn {
			notes = append(notes, fmt.Sprintf("metadata %s of aggregate %s is left out: a property of that name is built in", key, a.Name))
		}
		for _, name := range a.Hosts {
			i, ok := index[name]
			if !ok {
				continue
			}
			hosts[i].Aggregates = append(hosts[i].Aggregates, a.Name)
			if texts[i] == nil {
				texts[i] = map[string]string{}
			}
			for key, value := range metadata {
				if had, ok := texts[i][key]; ok && had != value {
					notes = append(notes, fmt.Sprintf("host %s has different values of %s: that of aggregate %s is ignored, since an aggregate before it by name has one", name, key, a.Name))
					continue
				}
				texts[i][key] = value
				words[key] = words[key] || !isNumber(value)
			}
		}
	}
	for i := range hosts {
		hosts[i].Properties = values(texts[i], words)
	}
	return notes
}

// properties returns the metadata of an aggregate that are properties, and the keys that cannot
// be one because their name is built in.
func properties(metadata map[string]string) (kept map[string]string, builtIn []string) {
	kept = make(map[string]string, len(metadata))
	for key, value := range metadata {
		switch {
		case key == "" || key == "availability_zone" || strings.HasPrefix(key, "almanac") ||
			strings.HasPrefix(key, "trait:") || strings.HasPrefix(key, "filter_tenant_id"):
		case inventory.IsBuiltIn(key):
			builtIn = append(builtIn, key)
		default:
			kept[key] = value
		}
	}
	return kept, builtIn
}

func isNumber(text string) bool {
	n, err := strconv.ParseFloat(text, 64)
	return err == nil && !math.IsInf(n, 0) && !math.IsNaN(n)
}

// values returns texts as properties: as numbers where they are some, except for the keys of words.
func values(texts map[string]string, words map[string]bool) map[string]inventory.Value {
	if len(texts) == 0 {
		return nil
	}
	properties := make(map[string]inventory.Value, len(texts))
	for key, text := range texts {
		if n, err := strconv.ParseFloat(text, 64); err == nil && !words[key] {
			properties[key] = inventory.NumberValue(n)
		} else {
			properties[key] = inventory.StringValue(text)
		}
	}
	return properties
}
