package api

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// query reads the parameters of a URL. The first mistake sticks in err.
type query struct {
	values url.Values
	err    error
}

// readQuery gives the parameters; one that is not among allowed is a mistake.
func readQuery(c *gin.Context, allowed ...string) *query {
	q := &query{values: c.Request.URL.Query()}
	for name := range q.values {
		if !slices.Contains(allowed, name) {
			q.fail(name, "%s", fault.Unknown("parameter", name, allowed))
		}
	}
	return q
}

func (q *query) fail(field, format string, args ...any) {
	if q.err == nil {
		q.err = fault.Field(field, format, args...)
	}
}

func (q *query) text(name string) string { return q.values.Get(name) }

// list gives the values of a parameter that is repeated, or has commas.
func (q *query) list(name string) []string {
	var list []string
	for _, value := range q.values[name] {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
	}
	return list
}

func (q *query) truth(name string) bool {
	switch strings.ToLower(q.text(name)) {
	case "", "false", "0", "no":
		return false
	case "true", "1", "yes":
		return true
	}
	q.fail(name, "must be true or false, not %q", q.text(name))
	return false
}

func (q *query) number(name string, otherwise, least, most int) int {
	if q.text(name) == "" {
		return otherwise
	}
	n, err := strconv.Atoi(q.text(name))
	if err != nil || n < least || n > most {
		q.fail(name, "must be a whole number from %d to %d, not %q", least, most, q.text(name))
	}
	return n
}

// time gives an instant, 0 where the parameter is absent.
func (q *query) time(name string) span.Instant {
	text := q.text(name)
	if text == "" {
		return 0
	}
	// A "+" that was not escaped arrives as a blank.
	t, err := time.Parse(time.RFC3339, strings.ReplaceAll(text, " ", "+"))
	if err != nil {
		q.fail(name, "must be a time with its zone, such as 2026-12-01T10:00:00Z, not %q", text)
	}
	return *instant(&t)
}

// seconds gives a duration, 0 where the parameter is absent.
func (q *query) seconds(name string) int64 {
	if q.text(name) == "" {
		return 0
	}
	d, err := v1.ParseDuration(q.text(name))
	if err != nil {
		q.fail(name, "%v", err)
	}
	return int64(d)
}

// window gives the span of two parameters: from now, and seconds long, where they
// are absent.
func (q *query) window(now span.Instant, seconds int64) span.Span {
	w := span.Span{Start: q.time("start"), End: q.time("end")}
	if w.Start == 0 {
		w.Start = now
	}
	if w.End == 0 {
		w.End = w.Start.Add(seconds)
	}
	if w.Empty() && q.err == nil {
		q.fail("end", "%v is not after the start, %v", w.End, w.Start)
	}
	return w
}
