// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDurationsAreWholeSeconds(t *testing.T) {
	for raw, want := range map[string]time.Duration{
		"0": 0, "90": 90 * time.Second, "2h30m": 150 * time.Minute, "30d": 720 * time.Hour, "1d12h": 36 * time.Hour,
		"2w": 336 * time.Hour,
	} {
		got, err := parseDuration(raw)
		if err != nil || got != want {
			t.Errorf("%q: got %v and error %v, want %v", raw, got, err, want)
		}
	}
	for _, raw := range []string{
		"", "d", "x", "1x", "100ms", "2000ms", "1.5", "1.5h", "1.5d", "30m2h", "-1d", "1d-5h", "1d5", "1h1d", "2 h", "999999999d", "9999999999999999999",
	} {
		if got, err := parseDuration(raw); err == nil {
			t.Errorf("%q is taken for %v", raw, got)
		}
	}
}

func TestAWrittenDurationIsReadAsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64Range(0, int64(longest/time.Second)).Draw(t, "seconds")) * time.Second
		text := formatDuration(want)
		if got, err := parseDuration(text); err != nil || got != want {
			t.Fatalf("%d s is written %q and read as %v, error %v", want/time.Second, text, got, err)
		}
	})
}
