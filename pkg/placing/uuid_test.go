// SPDX-License-Identifier: Apache-2.0

package placing_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/pkg/placing"
)

func TestAUUIDIsTheSameInAnyCaseAndOtherTextsAreNot(t *testing.T) {
	for text, want := range map[string]string{
		"5C6E3E52-0C0C-4D0E-9A4E-6A1F4F3F4C55": "5c6e3e52-0c0c-4d0e-9a4e-6a1f4f3f4c55",
		"5c6e3e52-0C0C-4d0e-9a4e-6a1f4f3f4c55": "5c6e3e52-0c0c-4d0e-9a4e-6a1f4f3f4c55",
		"5C6E3E52-0C0C-4D0E-9A4E-6A1F4F3F4C5G": "5C6E3E52-0C0C-4D0E-9A4E-6A1F4F3F4C5G",
		"5C6E3E5200C0C-4D0E-9A4E-6A1F4F3F4C55": "5C6E3E5200C0C-4D0E-9A4E-6A1F4F3F4C55",
		"5C6E3E520C0C4D0E9A4E6A1F4F3F4C55":     "5C6E3E520C0C4D0E9A4E6A1F4F3F4C55",
		"Render":                               "Render",
		"":                                     "",
	} {
		if got := placing.LowerUUID(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
