// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// query reads the parameters of a URL. err is the first mistake.
type query struct {
	values url.Values
	err    error
}

// longestQuery is the largest length of a query: a filter of 16 KiB with every byte escaped, and
// the other parameters.
const longestQuery = 64 << 10

// readQuery returns the parameters; a parameter that is not in allowed is a mistake.
func readQuery(c *gin.Context, allowed ...string) *query {
	if length := len(c.Request.URL.RawQuery); length > longestQuery {
		return &query{err: fault.New(fault.Invalid, "the parameters have %d bytes; at most %d are allowed", length, longestQuery)}
	}
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.err = fault.New(fault.Invalid, "the parameters cannot be read: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if q.err == nil && !slices.Contains(allowed, name) {
			q.fail(name, "%s", fault.Unknown("parameter", name, allowed))
		}
	}
	return q
}

// noParameters refuses requests with any parameter: a client must not get an answer that ignores a
// part of its request.
func (s *server) noParameters(c *gin.Context) {
	if q := readQuery(c); q.err != nil {
		s.fail(c, q.err)
	}
}

func (q *query) fail(field, format string, args ...any) {
	if q.err == nil {
		q.err = fault.Field(field, format, args...)
	}
}

func (q *query) text(name string) string {
	if len(q.values[name]) > 1 {
		q.fail(name, "may appear only once")
	}
	return q.values.Get(name)
}

// list returns the values of a parameter that is repeated or contains commas.
func (q *query) list(name string) []string {
	var list []string
	for _, value := range q.values[name] {
		for part := range strings.SplitSeq(value, ",") {
			list = append(list, strings.TrimSpace(part))
		}
	}
	return list
}

// hosts returns the names of a parameter that contains lists of hosts, and may be repeated.
func (q *query) hosts(name string) []string {
	if !q.values.Has(name) {
		return nil
	}
	hosts, err := inventory.ExpandNames(strings.Join(q.values[name], ","))
	if err != nil {
		q.fail(name, "%v", err)
	}
	return hosts
}

func (q *query) truth(name string) bool {
	if !q.values.Has(name) {
		return false
	}
	switch strings.ToLower(q.text(name)) {
	case "false", "0", "no":
		return false
	case "true", "1", "yes":
		return true
	}
	q.fail(name, "must be true or false, not %q", q.text(name))
	return false
}

func (q *query) number(name string, otherwise, least, most int) int {
	if !q.values.Has(name) {
		return otherwise
	}
	n, err := strconv.Atoi(q.text(name))
	if err != nil || n < least || n > most {
		q.fail(name, "must be a whole number from %d to %d, not %q", least, most, q.text(name))
	}
	return n
}

// lastYear is the last year of a parameter, so that the times in the answer stay within the years
// that RFC 3339 can represent.
const lastYear = 8999

// time returns an instant; 0 if the parameter is absent, and the next second for the instant 0, as
// the function instant does.
func (q *query) time(name string) span.Instant {
	at, given := q.exactly(name)
	if given && at == 0 {
		return 1
	}
	return at
}

// exactly returns an instant; given is false if the parameter is absent.
func (q *query) exactly(name string) (at span.Instant, given bool) {
	if !q.values.Has(name) {
		return 0, false
	}
	text := q.text(name)
	// A "+" that was not escaped arrives as a blank.
	t, err := span.ParseTime(strings.ReplaceAll(text, " ", "+"))
	if err != nil {
		q.fail(name, "must be a time with its zone, such as 2026-12-01T10:00:00Z, not %q", text)
	} else if year := t.UTC().Year(); year < 1 || year > lastYear {
		q.fail(name, "must lie in the years 1 to %d", lastYear)
	}
	return span.At(t), true
}

// seconds returns a duration in seconds; 0 if the parameter is absent.
func (q *query) seconds(name string) int64 {
	if !q.values.Has(name) {
		return 0
	}
	d, err := v1.ParseDuration(q.text(name))
	if err != nil {
		q.fail(name, "%v", err)
	}
	return int64(d)
}

// window returns the span of the parameters start and end. By default it begins at from and lasts
// `seconds` seconds.
func (q *query) window(from span.Instant, seconds int64) span.Span {
	var w span.Span
	var given bool
	if w.Start, given = q.exactly("start"); !given {
		w.Start = from
	}
	if w.End, given = q.exactly("end"); !given {
		w.End = w.Start.Add(seconds)
	}
	if w.Empty() && q.err == nil {
		q.fail("end", "%v is not after the start, %v", w.End, w.Start)
	}
	return w
}

// project returns the project that the parameters project_id and all_projects select, empty for
// all. It fails if the rule does not allow the list, with the ending _all if it is the list of
// others, or if a parameter is invalid.
func (q *query) project(by *asker, rule string) (string, error) {
	project := by.ProjectID
	if all, chosen := q.truth("all_projects"), q.text("project_id"); all || chosen != "" {
		if all || chosen != project {
			rule += "_all"
		}
		project = chosen
	} else if project == "" {
		q.fail("all_projects", "must be true unless project_id is set: your token is for the system and for no project")
	}
	return project, cmp.Or(by.check(rule, project), q.err)
}
