// SPDX-License-Identifier: Apache-2.0

package resource

import "strings"

// Whole returns a number in JSON without its fraction if that is zero: "3600.0", as Python writes a
// float, becomes "3600". Any other text stays as it is.
func Whole(number string) string {
	whole, fraction, _ := strings.Cut(number, ".")
	if fraction != "" && strings.Trim(fraction, "0") == "" {
		return whole
	}
	return number
}
