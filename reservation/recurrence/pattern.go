// SPDX-License-Identifier: Apache-2.0

package recurrence

import (
	"maps"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Pattern is when a reservation recurs, as its owner wrote it.
type Pattern struct {
	// Rule is an RRULE of RFC 5545, such as "FREQ=WEEKLY;BYDAY=MO,TU"; "RRULE:" before it is accepted.
	Rule string
	// TimeZone is an IANA name.
	TimeZone string
	// Start is the local time of the first occurrence, such as "2026-12-01T09:00:00"; the seconds are optional.
	Start string
	// Except lists local times, or local dates, that have no occurrence (EXDATE).
	Except []string
	// Also lists local times that have an occurrence too (RDATE).
	Also []string
}

const (
	longest = 500  // characters of a text
	mostOf  = 1000 // entries of Except, and of Also
)

// Rule is a Pattern that Parse has accepted. It is immutable. The zero Rule has no occurrence.
type Rule struct {
	pattern Pattern
	zone    *time.Location
	start   wall
	parts   parts
	// except has the local times without an occurrence, exceptDays the midnights of the days without one.
	except, exceptDays map[wall]bool
	also               []wall // sorted, each once
}

// Parse checks a pattern. The error is an Invalid *fault.Error whose Field is "rule", "time_zone", "start", "except" or "also".
func Parse(p Pattern) (Rule, error) {
	var r Rule
	var err error
	if r.zone, err = loadZone(p.TimeZone); err != nil {
		return Rule{}, err
	}
	var ok bool
	if r.start, ok = readLocal(p.Start); !ok {
		return Rule{}, fault.Field("start", `%s is no local time; write it as "2026-12-01T09:00:00", without an offset, in a year from %d to %d`, quoted(p.Start), firstYear, lastYear)
	}
	var rule string
	if r.parts, rule, err = parseParts(p.Rule); err != nil {
		return Rule{}, err
	}
	r.pattern = Pattern{Rule: rule, TimeZone: p.TimeZone, Start: r.start.String()}
	if err := r.checkStart(); err != nil {
		return Rule{}, err
	}
	if err := r.readAlso(p.Also); err != nil {
		return Rule{}, err
	}
	if err := r.readExcept(p.Except); err != nil {
		return Rule{}, err
	}
	return r, nil
}

// Pattern returns the pattern in its canonical form: full seconds, the rule in capital letters without "RRULE:", the lists sorted
// with each entry once. Parse accepts it and returns an equal Rule.
func (r Rule) Pattern() Pattern {
	p := r.pattern
	p.Except, p.Also = slices.Clone(p.Except), slices.Clone(p.Also)
	return p
}

// At returns when a local time is in the pattern's zone. A time that exists twice is the first of the two; one that the clock
// skips is as much after the gap as it is in it. The error is an Invalid *fault.Error without a field.
func (r Rule) At(local string) (span.Instant, error) {
	at, ok := readLocal(local)
	if !ok || r.zone == nil {
		return 0, fault.New(fault.Invalid, `%s is no local time; write it as "2026-12-01T09:00:00", without an offset, in a year from %d to %d`, quoted(local), firstYear, lastYear)
	}
	return instantOf(at, r.zone), nil
}

// From returns the local time, in full, of a text that names the first of some occurrences: a date, a local time, or a time in RFC 3339,
// for which it is what the clock shows then in the pattern's zone. The error is an Invalid *fault.Error without a field.
func (r Rule) From(text string) (string, error) {
	if at, ok := read(text, localForm, "2006-01-02T15:04", dateForm); ok {
		return at.String(), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || r.zone == nil {
		return "", fault.New(fault.Invalid, `%s is neither a date such as "2026-12-01", nor a local time such as "2026-12-01T09:00", nor a time such as "2026-12-01T09:00:00Z"`, quoted(text))
	}
	return wallOf(at.In(r.zone)).String(), nil
}

// checkStart returns an error unless the start is the first occurrence of the rule.
func (r Rule) checkStart() error {
	if r.start > r.parts.until || instantOf(r.start, r.zone) > r.parts.untilInstant {
		return fault.Field("rule", "UNTIL is before the start, %s", r.start)
	}
	for first := range r.ruled(latest) {
		if first == r.start {
			return nil
		}
		return fault.Field("start", "%s is not in the rule; the first local time on or after it that is in the rule is %s", r.start, first)
	}
	return fault.Field("start", "%s is not in the rule, and neither is a later local time up to UNTIL or the year %d", r.start, lastYear)
}

// readAlso sets the additional times.
func (r *Rule) readAlso(texts []string) error {
	if len(texts) > mostOf {
		return fault.Field("also", "has %d local times; the most is %d", len(texts), mostOf)
	}
	for _, text := range texts {
		at, ok := readLocal(text)
		if !ok {
			return fault.Field("also", `%s is no local time; write it as "2026-12-01T09:00:00", without an offset, in a year up to %d`, quoted(text), lastYear)
		}
		if at < r.start {
			return fault.Field("also", "%s is before the start, %s; the start is the first occurrence", at, r.start)
		}
		r.also = append(r.also, at)
	}
	slices.Sort(r.also)
	r.also = slices.Compact(r.also)
	for _, at := range r.also {
		r.pattern.Also = append(r.pattern.Also, at.String())
	}
	return nil
}

// readExcept sets the times and the days that are left out. Each names at least one occurrence.
func (r *Rule) readExcept(texts []string) error {
	if len(texts) > mostOf {
		return fault.Field("except", "has %d entries; the most is %d", len(texts), mostOf)
	}
	times, days := map[wall]bool{}, map[wall]bool{}
	for _, text := range texts {
		if at, ok := readLocal(text); ok {
			times[at] = true
			r.pattern.Except = append(r.pattern.Except, at.String())
		} else if at, ok := read(text, dateForm); ok {
			days[at] = true
			r.pattern.Except = append(r.pattern.Except, text)
		} else {
			return fault.Field("except", `%s is no local time and no date; write it as "2026-12-24T09:00:00", without an offset, or as "2026-12-24", in a year up to %d`, quoted(text), lastYear)
		}
	}
	slices.Sort(r.pattern.Except)
	r.pattern.Except = slices.Compact(r.pattern.Except)
	if err := r.checkExcept(times, days); err != nil {
		return err
	}
	r.except, r.exceptDays = times, days
	return nil
}

// checkExcept returns an error if one of the times or days to leave out has no occurrence, which may be a typo.
func (r Rule) checkExcept(times, days map[wall]bool) error {
	last := wall(-1)
	that := map[wall]wall{} // by midnight of a day of times: an occurrence on that day, or -1
	for at := range times {
		last, that[at.midnight()] = max(last, at.midnight()+day-1), -1
	}
	for at := range days {
		last = max(last, at+day-1)
	}
	times, days = maps.Clone(times), maps.Clone(days)
	for at := range r.locals(last) {
		delete(times, at)
		delete(days, at.midnight())
		if _, asked := that[at.midnight()]; asked {
			that[at.midnight()] = at
		}
	}
	for _, at := range slices.Sorted(maps.Keys(times)) {
		if other := that[at.midnight()]; other >= 0 {
			return fault.Field("except", "%s is no occurrence; the one on that day is at %s", at, other)
		}
		return fault.Field("except", "%s is no occurrence, and no other is on that day", at)
	}
	for _, at := range slices.Sorted(maps.Keys(days)) {
		return fault.Field("except", "%s has no occurrence", at.date().Format(dateForm))
	}
	return nil
}
