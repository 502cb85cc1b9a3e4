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
	hosts  hostset.Set // that have one of their own
	values []float64   // by place in States
}

// overridden gives what aggregates set for each weigher, nil where they set nothing
// (nova/scheduler/utils.py get_weight_multiplier): of a host in several such aggregates
// the least counts, and where one of them cannot be read, the configured one.
func overridden(s *inventory.States, weighers []Weighted) []*overrides {
	places := make(map[string]int, len(weighers))
	for i, w := range weighers {
		if w.Option != "" {
			places[w.Option] = i
		}
	}
	own := make([]*overrides, len(weighers))
	unread := make([]hostset.Set, len(weighers))
	for a := range s.Aggregates() {
		aggregate := &s.Aggregates()[a]
		for key, text := range aggregate.Metadata {
			i, is := places[key]
			if !is {
				continue
			}
			if own[i] == nil {
				own[i] = &overrides{hosts: hostset.New(s.Len()), values: make([]float64, s.Len())}
				unread[i] = hostset.New(s.Len())
			}
			if value, ok := parseMultiplier(text); ok {
				own[i].lower(s.Members(aggregate.UUID), value)
			} else {
				unread[i].Unite(s.Members(aggregate.UUID))
			}
		}
	}
	for i, o := range own {
		if o != nil {
			o.forget(unread[i])
		}
	}
	return own
}

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

// parseMultiplier reads a decimal number, as Nova does. What is not finite is no
// multiplier: it would make the weights of hosts incomparable.
func parseMultiplier(text string) (float64, bool) {
	digits := strings.TrimSpace(text)
	if strings.ContainsAny(digits, "xX") { // hexadecimal to Go, nothing to Python
		return 0, false
	}
	value, err := strconv.ParseFloat(digits, 64)
	return value, err == nil && !math.IsInf(value, 0) && !math.IsNaN(value)
}
