// SPDX-License-Identifier: Apache-2.0

package span_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/span"
)

func TestDurationsAreWholeSeconds(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "90": 90, "-5": -5, "2h30m": 9000, "30d": 30 * 86_400, "1d12h": 36 * 3600, "1w12h": 7*86_400 + 12*3600,
		"2w3d": 17 * 86_400, "9223372036854775807": 9223372036854775807,
	} {
		got, err := span.ParseDuration(text)
		if err != nil || got != want {
			t.Errorf("%q: got %d and error %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "w", "d", "x", "1x", "100ms", "2000ms", "1.5", "1.5h", "1.5d", "+5", "30m2h", "-1d", "-2h", "+2h", "1d-5h", "1d5", "1h1d", "1d1w", "2 h", "99999999999999999d", "9999999999999999999", "9999999999999999h",
	} {
		if got, err := span.ParseDuration(text); err == nil {
			t.Errorf("%q is accepted as %d s", text, got)
		}
	}
}

func TestAWrittenDurationIsReadAsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Int64Min(0).Draw(t, "seconds") % (1 << 48)
		text := span.FormatDuration(want)
		if got, err := span.ParseDuration(text); err != nil || got != want {
			t.Fatalf("%d s is written %q and read as %d, error %v", want, text, got, err)
		}
	})
	for seconds, want := range map[int64]string{0: "0s", -90: "-1m30s", -1 << 63: "-106751991167300d15h30m8s", 86_461: "1d1m1s"} {
		if got := span.FormatDuration(seconds); got != want {
			t.Errorf("%d s is written %q, want %q", seconds, got, want)
		}
	}
}
