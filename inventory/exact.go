// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
)

var wholeNumber = regexp.MustCompile(`^-?[0-9]+$`)

// inexact returns the first whole number in JSON that no float64 is, which is therefore more than
// 2^53; empty if there is none. JSON in a text, as a filter may be, counts too.
func inexact(raw []byte) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = []byte(text)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err != nil { // the end, or no JSON, which others report
			return ""
		}
		if number, is := token.(json.Number); is && !Exact(number) {
			return number.String()
		}
	}
}

// Exact reports whether the comparison of a number with others is exact: it is no whole number, or one
// that a float64 can be.
func Exact(number json.Number) bool {
	value, err := number.Float64()
	return err != nil || !wholeNumber.MatchString(number.String()) || strconv.FormatFloat(value, 'f', 0, 64) == number.String()
}
