// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// layouts are the forms of a time in a request. Blazar knows the first one, and reads numbers of one
// digit too (strptime).
var layouts = func() (list []string) {
	for _, between := range []string{" ", "T"} {
		for _, seconds := range []string{"", ":5"} {
			for _, zone := range []string{"", "Z07:00"} {
				list = append(list, "2006-1-2"+between+"15:4"+seconds+zone)
			}
		}
	}
	return list
}()

// readTime returns the instant that text names, without its seconds. The word now is the present
// minute, and a time without a zone is in UTC.
func readTime(text string, now span.Instant) (span.Instant, error) {
	if isNow(text) {
		return minute(now), nil
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, strings.ToUpper(text)); err == nil { // RFC 3339 allows t and z
			return minute(span.At(t)), nil
		}
	}
	return 0, fault.New(fault.Invalid, "%s is an invalid date. Required format: %%Y-%%m-%%d %%H:%%M", shorten(text))
}

// isNow reports whether the value of a time is the word now.
func isNow(value any) bool {
	text, _ := value.(string)
	return strings.EqualFold(text, "now")
}

// minute returns the beginning of the minute.
func minute(at span.Instant) span.Instant {
	const length = 60
	return at - (at%length+length)%length
}

// Time returns a time of a lease, an event or an allocation as Blazar writes it: in UTC, without a
// zone, with six digits after the second.
func Time(at span.Instant) string { return at.Time().Format("2006-01-02T15:04:05.000000") }

// RowTime returns created_at or updated_at as Blazar writes it (blazar/db/sqlalchemy/model_base.py,
// datetime_to_str).
func RowTime(at span.Instant) string { return at.Time().Format("2006-01-02 15:04:05") }
