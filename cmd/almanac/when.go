// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// period is a flag for a duration in whole seconds, not negative.
type period v1.Duration

func (d *period) Set(text string) error {
	read, err := v1.ParseDuration(text)
	if err == nil && read < 0 {
		err = fmt.Errorf("a duration cannot be negative")
	} else if most := time.Duration(math.MaxInt64).Truncate(time.Second); err == nil && int64(read) > int64(most/time.Second) {
		err = fmt.Errorf("a duration cannot be longer than 292 years")
	}
	*d = period(read)
	return err
}

func (d *period) String() string {
	if *d == 0 {
		return ""
	}
	return v1.Duration(*d).String()
}

func (d *period) Type() string { return "duration" }

func (d period) time() time.Duration { return time.Duration(d) * time.Second }

// moment is a flag for a time; parseTime defines its form.
type moment struct {
	at       time.Time // zero without the flag
	now      bool      // its text is "now"
	relative string    // its text, if it counts from now and settle has not run; then at is no time yet
}

func (m *moment) Set(text string) (err error) {
	m.now, m.relative = text == "now", ""
	if fromNow(text) {
		m.relative = text
	}
	m.at, err = parseTime(text, time.Unix(0, 0))
	return err
}

// settle makes the times in the flags that are relative to now count from the service's time.
func (p *process) settle(c *cobra.Command) error {
	var relative []*moment
	c.Flags().Visit(func(f *pflag.Flag) {
		if of, is := f.Value.(interface{ moment() *moment }); is && of.moment().relative != "" {
			relative = append(relative, of.moment())
		}
	})
	if len(relative) == 0 {
		return nil
	}
	almanac, err := p.connect(c.Context())
	if err != nil {
		return err
	}
	now, err := almanac.Now(c.Context())
	if err != nil {
		return err
	}
	for _, m := range relative {
		if m.at, err = parseTime(m.relative, now); err != nil {
			return err
		}
		m.relative = ""
	}
	return nil
}

func (m *moment) String() string {
	if m.at.IsZero() {
		return ""
	}
	return stamp(m.at)
}

func (m *moment) Type() string { return "time" }

func (m *moment) moment() *moment { return m }

// ahead returns the time; nil without the flag and for "now", because the service decides when
// that is.
func (m *moment) ahead() *time.Time {
	if m.at.IsZero() || m.now {
		return nil
	}
	return &m.at
}

// fromNow reports whether the text of a time is relative to now.
func fromNow(text string) bool {
	return text == "now" || strings.HasPrefix(strings.TrimPrefix(text, "now"), "+")
}

const farthest = v1.Duration(100 * 366 * 24 * 3600)

// parseTime reads "now", a duration from now ("+2h", "now+1d12h"), or a time of day with its
// zone. It returns whole seconds in UTC.
func parseTime(text string, now time.Time) (time.Time, error) {
	now = now.UTC().Truncate(time.Second)
	if text == "now" {
		return now, nil
	}
	if later, ok := strings.CutPrefix(strings.TrimPrefix(text, "now"), "+"); ok {
		d, err := v1.ParseDuration(later)
		if err != nil {
			return time.Time{}, err
		}
		if d < 0 || d > farthest {
			return time.Time{}, fmt.Errorf("%q lies too far ahead", text)
		}
		return now.Add(time.Duration(d) * time.Second), nil
	}
	for _, day := range []string{"2006-01-02T15:04", "2006-01-02 15:04"} {
		for _, second := range []string{"", ":05"} {
			for _, zone := range []string{"Z07:00", "Z0700", " Z07:00", " Z0700"} {
				if t, err := time.Parse(day+second+zone, text); err == nil {
					return whole(t, text)
				}
			}
			if _, err := time.Parse(day+second, text); err == nil {
				return time.Time{}, fmt.Errorf("%q has no time zone; add Z for UTC, or an offset such as +01:00", text)
			}
		}
	}
	if _, err := time.Parse("2006-01-02", text); err == nil {
		return time.Time{}, fmt.Errorf("%q has no time of day; write %sT00:00Z", text, text)
	}
	return time.Time{}, fmt.Errorf("%q is not a time; write now, +2h, or one with its zone such as 2026-12-01T10:00+01:00", text)
}

func whole(t time.Time, text string) (time.Time, error) {
	if t.Nanosecond() != 0 {
		return time.Time{}, fmt.Errorf("%q has a fraction of a second; times are in whole seconds", text)
	}
	return t.UTC(), nil
}
