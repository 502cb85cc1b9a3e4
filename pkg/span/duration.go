package span

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

var errNoDuration = errors.New(`must be whole seconds, or have units, such as 90, 2h30m, 3d or 1w12h`)

// longUnits are the units that the package time does not know, in seconds.
var longUnits = []struct {
	name    string
	seconds int64
}{{"w", 7 * 86_400}, {"d", 86_400}}

// ParseDuration returns the seconds of a duration: a whole number of seconds ("90",
// "-5"), or amounts with units ("2h30m", "1w12h"). Weeks (w) and days (d) come first
// and are whole numbers; the rest is in the units of time.ParseDuration (h, m, s), not
// negative. The sum must be whole seconds. Durations in the configuration, in the API
// and its filters, on the command line and in YAML files are written this way.
func ParseDuration(text string) (seconds int64, err error) {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return seconds, nil
	}
	rest := text
	for _, unit := range longUnits {
		amount, after, found := strings.Cut(rest, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(amount, 10, 32)
		if err != nil {
			return 0, errNoDuration
		}
		seconds, rest = seconds+int64(n)*unit.seconds, after
	}
	if rest == "" && text != "" {
		return seconds, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || strings.ContainsAny(rest, "+-") || d%time.Second != 0 {
		return 0, errNoDuration
	}
	return seconds + int64(d/time.Second), nil
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
