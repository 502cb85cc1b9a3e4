// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Parameters reads the parameters of a URL.
type Parameters struct {
	// Err is the first mistake.
	Err error

	values url.Values
}

// longestQuery is the largest length of a query: a filter of 16 KiB with every byte escaped, and
// the other parameters.
const longestQuery = 64 << 10

// Parameters returns the parameters of the URL; a parameter that is not in allowed is a mistake.
func (c *Call) Parameters(allowed ...string) *Parameters {
	if length := len(c.Request.URL.RawQuery); length > longestQuery {
		return &Parameters{Err: fault.New(fault.Invalid, "the parameters have %d bytes; at most %d are allowed", length, longestQuery)}
	}
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	q := &Parameters{values: values}
	if err != nil {
		q.Err = fault.New(fault.Invalid, "the parameters cannot be read: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if q.Err == nil && !slices.Contains(allowed, name) {
			q.Fail(name, "%s", fault.Unknown("parameter", name, allowed))
		}
	}
	return q
}

// Fail notes a mistake in a parameter, unless there was one before.
func (q *Parameters) Fail(field, format string, args ...any) {
	if q.Err == nil {
		q.Err = fault.Field(field, format, args...)
	}
}

// Has reports whether the URL has a parameter.
func (q *Parameters) Has(name string) bool { return q.values.Has(name) }

// Text returns the text of a parameter; empty if it is absent.
func (q *Parameters) Text(name string) string {
	if len(q.values[name]) > 1 {
		q.Fail(name, "may appear only once")
	}
	return q.values.Get(name)
}

// List returns the values of a parameter that is repeated or contains commas.
func (q *Parameters) List(name string) []string {
	var list []string
	for _, value := range q.values[name] {
		for part := range strings.SplitSeq(value, ",") {
			list = append(list, strings.TrimSpace(part))
		}
	}
	return list
}

// Hosts returns the names of a parameter that contains lists of hosts, and may be repeated.
func (q *Parameters) Hosts(name string) []string {
	if !q.Has(name) {
		return nil
	}
	hosts, err := inventory.ExpandNames(strings.Join(q.values[name], ","))
	if err != nil {
		q.Fail(name, "%v", err)
	}
	return hosts
}

// Truth returns whether a parameter is true; false if it is absent.
func (q *Parameters) Truth(name string) bool {
	if !q.Has(name) {
		return false
	}
	switch strings.ToLower(q.Text(name)) {
	case "false", "0", "no":
		return false
	case "true", "1", "yes":
		return true
	}
	q.Fail(name, "must be true or false, not %q", q.Text(name))
	return false
}

// Number returns a whole number from least to most; otherwise if the parameter is absent.
func (q *Parameters) Number(name string, otherwise, least, most int) int {
	if !q.Has(name) {
		return otherwise
	}
	n, err := strconv.Atoi(q.Text(name))
	if err != nil || n < least || n > most {
		q.Fail(name, "must be a whole number from %d to %d, not %q", least, most, q.Text(name))
	}
	return n
}

// LastYear is the last year of a parameter, so that the times in the answer stay within the years
// that RFC 3339 can represent.
const LastYear = 8999

// Time returns an instant; 0 if the parameter is absent, and the next second for the instant 0, as
// the function instant does.
func (q *Parameters) Time(name string) span.Instant {
	at, given := q.Exactly(name)
	if given && at == 0 {
		return 1
	}
	return at
}

// Exactly returns an instant; given is false if the parameter is absent.
func (q *Parameters) Exactly(name string) (at span.Instant, given bool) {
	if !q.Has(name) {
		return 0, false
	}
	text := q.Text(name)
	// A "+" that was not escaped arrives as a blank.
	t, err := span.ParseTime(strings.ReplaceAll(text, " ", "+"))
	if err != nil {
		q.Fail(name, "must be a time with its zone, such as 2026-12-01T10:00:00Z, not %q", text)
	} else if year := t.UTC().Year(); year < 1 || year > LastYear {
		q.Fail(name, "must lie in the years 1 to %d", LastYear)
	}
	return span.At(t), true
}

// Seconds returns a duration in seconds; 0 if the parameter is absent.
func (q *Parameters) Seconds(name string) int64 {
	if !q.Has(name) {
		return 0
	}
	d, err := v1.ParseDuration(q.Text(name))
	if err != nil {
		q.Fail(name, "%v", err)
	}
	return int64(d)
}

// Window returns the span of the parameters start and end. By default it begins at from and lasts
// `seconds` seconds.
func (q *Parameters) Window(from span.Instant, seconds int64) span.Span {
	var w span.Span
	var given bool
	if w.Start, given = q.Exactly("start"); !given {
		w.Start = from
	}
	if w.End, given = q.Exactly("end"); !given {
		w.End = w.Start.Add(seconds)
	}
	if w.Empty() && q.Err == nil {
		q.Fail("end", "%v is not after the start, %v", w.End, w.Start)
	}
	return w
}

// Project returns the project that the parameters project_id and all_projects select, empty for
// all. It fails if the rule does not allow the list, with the ending _all if it is the list of
// others, or if a parameter is invalid.
func (q *Parameters) Project(by *Asker, rule string) (string, error) {
	project := by.ProjectID
	if all, chosen := q.Truth("all_projects"), q.Text("project_id"); all || chosen != "" {
		if all || chosen != project {
			rule += "_all"
		}
		project = chosen
	} else if project == "" {
		q.Fail("all_projects", "must be true unless project_id is set: your token is for the system and for no project")
	}
	return project, cmp.Or(by.Check(rule, project), q.Err)
}

// Choice returns the value of a parameter, which must be one of the words; otherwise if the parameter is absent.
func (q *Parameters) Choice(name, otherwise string, words ...string) string {
	if !q.Has(name) {
		return otherwise
	}
	chosen := q.Text(name)
	if !slices.Contains(words, chosen) {
		q.Fail(name, "%s", fault.Unknown("choice", chosen, words))
	}
	return chosen
}

// The numbers of entries of a page: without a parameter, and at most.
const (
	DefaultPage = 100
	LargestPage = 1000
)

// DefaultView is how many seconds the calendar, the availability and the host-hours cover if a request has no end.
const DefaultView = 7 * 24 * 3600
