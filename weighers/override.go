// SPDX-License-Identifier: Apache-2.0

package weighers

import (
	"math"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
)

// overrides are the multipliers that aggregates set for a weigher.
type overrides struct {
	hosts  hostset.Set // those with a multiplier of their own
	unread hostset.Set // those with one that is not a number
	values []float64   // by host of States
}

// overridden returns the multipliers that aggregates set, for each weigher; nil if they set none
// (nova/scheduler/utils.py get_weight_multiplier). If several aggregates of a host set one, the
// least counts; if any of them is not a number, the configured one does.
func overridden(s *inventory.States, weighers []Weighted) []*overrides {
	options := make(map[string]*overrides, len(weighers))
	for _, w := range weighers {
		if w.Option != "" && !(w.OffAtZero && w.Multiplier == 0) {
			options[w.Option] = nil
		}
	}
	for a := range s.Aggregates() {
		aggregate := &s.Aggregates()[a]
		for key, text := range aggregate.Metadata {
			o, is := options[key]
			if !is {
				continue
			}
			if o == nil {
				o = &overrides{hosts: hostset.New(s.Len()), unread: hostset.New(s.Len()), values: make([]float64, s.Len())}
				options[key] = o
			}
			if value, ok := parseMultiplier(text); ok {
				o.lower(s.Members(aggregate.UUID), value)
			} else {
				o.unread.Unite(s.Members(aggregate.UUID))
			}
		}
	}
	own := make([]*overrides, len(weighers))
	for i, w := range weighers {
		if own[i] = options[w.Option]; own[i] != nil {
			own[i].forget(own[i].unread)
		}
	}
	return own
}

// lower sets the value of hosts, unless one already has a lower value.
func (o *overrides) lower(hosts hostset.Set, value float64) {
	for host := range hosts.All() {
		if !o.hosts.Has(host) {
			o.hosts.Add(host)
			o.values[host] = value
		}
		o.values[host] = min(o.values[host], value)
	}
}

func (o *overrides) forget(hosts hostset.Set) {
	for host := range hosts.All() {
		o.hosts.Remove(host)
	}
}

// parseMultiplier parses a decimal number as Python does for Nova. It rejects infinity and NaN,
// which would make weights incomparable.
func parseMultiplier(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	digit := func(i int) bool { return i >= 0 && i < len(text) && '0' <= text[i] && text[i] <= '9' }
	for i := range text {
		switch text[i] {
		case 'x', 'X': // a number to Go, but not to Python
			return 0, false
		case '_':
			if !digit(i-1) || !digit(i+1) {
				return 0, false
			}
		}
	}
	value, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	return value, err == nil && !math.IsInf(value, 0) && !math.IsNaN(value)
}
