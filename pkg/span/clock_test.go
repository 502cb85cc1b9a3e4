// SPDX-License-Identifier: Apache-2.0

package span_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/pkg/span"
)

func TestATimeIsOneOfRFC3339(t *testing.T) {
	want, err := span.ParseTime("2026-12-01T09:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"2026-12-01t09:00:00z", "2026-12-01T10:00:00+01:00", "2026-12-01T03:30:00-05:30", "2026-12-01T09:00:00.75Z", "2026-12-01t09:00:00.999999999z",
	} {
		if got, err := span.ParseTime(text); err != nil || span.At(got) != span.At(want) {
			t.Errorf("%q is %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "now", "2026-12-01", "2026-12-01T09:00Z", "2026-12-01T09:00:00", "2026-12-01 09:00:00Z", "2026-12-01T09:00:00 Z",
		"2026-12-31T23:59:60Z", "2026-12-01T24:00:00Z", "2026-02-30T09:00:00Z", "12026-12-01T09:00:00Z",
	} {
		if got, err := span.ParseTime(text); err == nil {
			t.Errorf("%q is accepted as %v", text, got)
		}
	}
}
