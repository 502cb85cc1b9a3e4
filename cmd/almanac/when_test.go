// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
)

func TestTimesAreReadWithTheirZone(t *testing.T) {
	now := morning.Add(300 * time.Millisecond)
	for text, want := range map[string]string{
		"now":                       "2026-12-01T09:00:00Z",
		"+2h":                       "2026-12-01T11:00:00Z",
		"now+90":                    "2026-12-01T09:01:30Z",
		"+1d12h":                    "2026-12-02T21:00:00Z",
		"2026-12-01T10:00+01:00":    "2026-12-01T09:00:00Z",
		"2026-12-01T10:00:30Z":      "2026-12-01T10:00:30Z",
		"2026-12-01 10:00Z":         "2026-12-01T10:00:00Z",
		"2026-12-01 10:00 -05:00":   "2026-12-01T15:00:00Z",
		"2026-12-01T10:00:00+0530":  "2026-12-01T04:30:00Z",
		"2026-12-01 10:00:00 +0100": "2026-12-01T09:00:00Z",
	} {
		got, err := parseTime(text, now)
		if err != nil || stamp(got) != want || got.Nanosecond() != 0 {
			t.Errorf("%q: got %v, %v; want %s", text, got, err, want)
		}
	}
}

func TestTimesThatCouldBeMistakenAreRefusedWithAWayOut(t *testing.T) {
	for text, want := range map[string]string{
		"2026-12-01T10:00":       "add Z for UTC",
		"2026-12-01 10:00:00":    "add Z for UTC",
		"2026-12-01":             "2026-12-01T00:00Z",
		"2026-12-01T10:00:00.5Z": "whole seconds",
		"tomorrow":               "write now, +2h",
		"":                       "write now, +2h",
		"2026-13-01T10:00Z":      "write now, +2h",
		"+":                      "not a duration",
		"+-5":                    "too far",
		"+9223372036854775807":   "too far",
	} {
		if _, err := parseTime(text, morning); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
}

func TestAPeriodIsNotNegative(t *testing.T) {
	var d period
	if err := d.Set("-5"); err == nil {
		t.Error("accepted -5")
	}
	if err := d.Set("1d12h"); err != nil || d.time() != 36*time.Hour {
		t.Errorf("1d12h: got %v, %v", d.time(), err)
	}
}

func TestAPeriodFitsIntoTheTimesThatItIsAddedTo(t *testing.T) {
	for text, fits := range map[string]bool{"1h": true, "15250w": true, "15251w": false, "5124096h": false, "-1h": false} {
		var p period
		if err := p.Set(text); (err == nil) != fits {
			t.Errorf("%s: %v", text, err)
		}
		if fits && p.time() <= 0 {
			t.Errorf("%s is %v", text, p.time())
		}
	}
}
