// SPDX-License-Identifier: Apache-2.0

package span

import (
	"strings"
	"time"
)

// ParseTime returns the time of a text in RFC 3339, whose T and Z may be lower case. A time has
// seconds from 00 to 59, since instants know no leap seconds; a fraction is cut off by At.
func ParseTime(text string) (t time.Time, err error) {
	return t, t.UnmarshalText([]byte(strings.ToUpper(text)))
}
