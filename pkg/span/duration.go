// SPDX-License-Identifier: Apache-2.0

package span

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

var errNoDuration = errors.New(`must be whole seconds, or amounts with units from weeks to seconds, such as 90, 2h30m, 3d or 1w12h`)

// unitOrder matches a duration with units. unitSeconds has the seconds of each group.
var (
	unitOrder   = regexp.MustCompile(`^(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$`)
	unitSeconds = []int64{7 * 86_400, 86_400, 3600, 60, 1}
)

// ParseDuration returns the seconds of a duration: a whole number of seconds ("90", "-5"), or
// whole amounts of weeks (w), days (d), hours (h), minutes (m) and seconds (s) in this order
// ("2h30m", "1w12h"). Durations in the configuration, in the API and its filters, on the
// command line and in YAML files are written this way.
func ParseDuration(text string) (seconds int64, err error) {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil && !strings.HasPrefix(text, "+") {
		return seconds, nil
	}
	amounts := unitOrder.FindStringSubmatch(text)
	if text == "" || amounts == nil {
		return 0, errNoDuration
	}
	for i, amount := range amounts[1:] {
		if amount == "" {
			continue
		}
		n, err := strconv.ParseInt(amount, 10, 64)
		if err != nil || n > (math.MaxInt64-seconds)/unitSeconds[i] {
			return 0, errNoDuration
		}
		seconds += n * unitSeconds[i]
	}
	return seconds, nil
}

// FormatDuration writes seconds in days, hours, minutes and seconds, as ParseDuration
// reads them: "1d12h". Zero is "0s"; a negative duration starts with a minus sign.
func FormatDuration(seconds int64) string {
	if seconds == 0 {
		return "0s"
	}
	var text strings.Builder
	rest := uint64(seconds)
	if seconds < 0 {
		text.WriteString("-")
		rest = -rest
	}
	for _, unit := range []struct {
		name    string
		seconds uint64
	}{{"d", 86_400}, {"h", 3600}, {"m", 60}, {"s", 1}} {
		if n := rest / unit.seconds; n > 0 {
			fmt.Fprintf(&text, "%d%s", n, unit.name)
			rest %= unit.seconds
		}
	}
	return text.String()
}
