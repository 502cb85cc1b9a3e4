package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a number of seconds ("90") or numbers with units
// ("2h30m", "30d", "1d12h") that add up to whole seconds.
func ParseDuration(raw string) (time.Duration, error) {
	text := raw
	if days, rest, found := strings.Cut(raw, "d"); found {
		n, err := strconv.ParseUint(days, 10, 32)
		if err != nil {
			return 0, err
		}
		text = fmt.Sprintf("%dh%s", n*24, rest)
	} else if _, err := strconv.Atoi(raw); err == nil {
		text = raw + "s"
	}
	d, err := time.ParseDuration(text)
	if err == nil && d%time.Second != 0 {
		err = errors.New("not in whole seconds")
	}
	return d, err
}

// formatDuration writes whole seconds, not negative, as ParseDuration reads them.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	var b strings.Builder
	for _, unit := range []struct {
		length time.Duration
		letter string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d / unit.length; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, unit.letter)
			d -= n * unit.length
		}
	}
	return b.String()
}
