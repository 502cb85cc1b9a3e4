// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Phase returns the phase that an entry of kind EntryPhase tells of; ok is false for other entries.
func (e Entry) Phase() (p Phase, ok bool) {
	word, _, _ := strings.Cut(e.Text, ":")
	if e.Kind != EntryPhase || !slices.Contains(PhaseWords, word) {
		return Awake, false
	}
	if word == Awake.Word() {
		return Awake, true
	}
	return Phase(word), true
}

// Slept returns when each host was asleep within w until now, sorted. entries are those of kind
// EntryPhase from the start of w on, and of each of their hosts the last one before, the oldest first;
// records are the present ones. A host without an entry before w was asleep until it wakes first.
func Slept(w span.Span, now span.Instant, entries []Entry, records map[string]Record) map[string][]span.Span {
	asleep := make(map[string]span.Instant) // since when, of hosts that are asleep at the current entry
	seen := make(map[string]bool)
	slept := make(map[string][]span.Span)
	wake := func(host string, at span.Instant) {
		part := span.Span{Start: max(asleep[host], w.Start), End: min(at, w.End, now)}
		if delete(asleep, host); !part.Empty() {
			slept[host] = append(slept[host], part)
		}
	}
	for _, e := range entries {
		p, ok := e.Phase()
		if !ok {
			continue
		}
		if _, sleeps := asleep[e.Host]; !sleeps && !seen[e.Host] && p == Waking {
			asleep[e.Host] = w.Start
		}
		seen[e.Host] = true
		if _, sleeps := asleep[e.Host]; sleeps && p != Asleep {
			wake(e.Host, e.At)
		} else if !sleeps && p == Asleep {
			asleep[e.Host] = e.At
		}
	}
	for host, r := range records {
		if r.Phase == Asleep && !seen[host] {
			asleep[host] = r.Since
		}
	}
	for host := range asleep {
		wake(host, now)
	}
	return slept
}
