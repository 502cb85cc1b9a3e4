// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Admission selects the hosts that may be switched off. By default it selects none: an operator has
// to admit hosts.
type Admission struct {
	Aggregates, Traits []string // hosts with one of these are admitted
	Property           string   // name of a property: true admits the host, false always refuses it
}

// Refuses returns the reason, as a sentence, why the host may not be switched off; "" if it may.
func (a Admission) Refuses(h *inventory.Host) string {
	if why := a.Forbids(h); why != "" {
		return why
	}
	if _, there := h.Properties[a.Property]; there && a.Property != "" {
		return ""
	}
	for _, name := range h.Aggregates {
		if slices.Contains(a.Aggregates, name) {
			return ""
		}
	}
	for _, name := range h.Traits {
		if slices.Contains(a.Traits, name) {
			return ""
		}
	}
	return "it was not admitted: it has no property " + a.Property + ", and is in none of the aggregates and traits of [energy]"
}

// Forbids returns the reason, as a sentence, why the host may not be switched off even by a manual
// order, which is that its property is false; "" if a manual order may.
func (a Admission) Forbids(h *inventory.Host) string {
	if set, there := h.Properties[a.Property]; there && a.Property != "" && !admits(set) {
		return "its property " + a.Property + " forbids it"
	}
	return ""
}

// admits interprets a property as yes or no. Metadata of aggregates are strings.
func admits(v inventory.Value) bool {
	switch set := v.Any().(type) {
	case bool:
		return set
	case string:
		return slices.Contains([]string{"true", "True", "yes", "on"}, set)
	case float64:
		return set == 1
	}
	return false
}

// ModeOf returns the mode that applies to a host: its own mode, otherwise the least of the modes of
// its aggregates, otherwise the mode of all hosts, otherwise the configured one.
func (s *Settings) ModeOf(own Mode, aggregates []string, configured Mode) Mode {
	if own != "" {
		return own
	}
	least := Mode("")
	for _, name := range aggregates {
		if m, set := s.Aggregates[name]; set && (least == "" || m.rank() < least.rank()) {
			least = m
		}
	}
	switch {
	case least != "":
		return least
	case s.Mode != "":
		return s.Mode
	}
	return configured
}

func (m Mode) rank() int { return slices.Index(Modes, m) }

// AtLeast reports whether m permits the controller at least as much as other.
func (m Mode) AtLeast(other Mode) bool { return m.rank() >= other.rank() }

// Rests reports whether the controller has nothing to measure or to do at now: the mode of all
// hosts is off, no aggregate or host has another mode, every host is awake and not being switched,
// and no manual order applies.
func (s *Settings) Rests(now span.Instant, configured Mode, records map[string]Record) bool {
	if s.ModeOf("", nil, configured) != ModeOff {
		return false
	}
	for _, m := range s.Aggregates {
		if m != ModeOff {
			return false
		}
	}
	for _, r := range records {
		if r.Mode != "" && r.Mode != ModeOff || r.Phase != Awake || r.Operation != "" || r.Hold.Holds(now) {
			return false
		}
	}
	return true
}
