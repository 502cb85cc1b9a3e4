// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// comparison is the requirement of one extra spec for a host's value
// (nova/scheduler/filters/extra_specs_ops.py match).
type comparison struct {
	text   string
	op     string // empty is equality with text
	words  []string
	number float64 // of the first word, if op compares numbers
	wrong  error   // set if the comparison is impossible
}

// compare parses the value of an extra spec: an operator and words, or a text.
func compare(text string) comparison {
	c := comparison{text: text}
	words := strings.FieldsFunc(text, space)
	if len(words) == 0 {
		return c
	}
	switch words[0] {
	case "=", "==", "!=", ">=", "<=":
		if len(words) > 1 {
			c.number, c.wrong = float(words[1])
		}
	case "s==", "s!=", "s<", "s<=", "s>", "s>=", "<in>", "<all-in>":
	case "<or>":
		if len(words) == 1 {
			c.wrong = fmt.Errorf("<or> needs a word after it")
		}
	default:
		return c
	}
	c.op, c.words = words[0], words[1:]
	return c
}

// holds reports whether the value meets the requirement. It returns an error if the two cannot
// be compared; Nova then fails the request.
func (c comparison) holds(value string) (bool, error) {
	switch {
	case c.op == "":
		return value == c.text, nil
	case len(c.words) == 0:
		return false, c.wrong
	case c.op == "<or>":
		for n := 0; n < len(c.words); n += 2 { // every other word is an operator
			if c.words[n] == value {
				return true, nil
			}
		}
		return false, nil
	case c.op == "<in>":
		return strings.Contains(value, c.words[0]), nil
	case c.op == "<all-in>":
		for _, word := range c.words {
			if !strings.Contains(value, word) {
				return false, nil
			}
		}
		return true, nil
	case c.op[0] == 's':
		return ordered(c.op[1:], cmp.Compare(value, c.words[0])), nil
	}
	number, err := float(value)
	if err = cmp.Or(err, c.wrong); err != nil {
		return false, err
	}
	if math.IsNaN(number) || math.IsNaN(c.number) {
		return c.op == "!=", nil
	}
	if c.op == "=" {
		return number >= c.number, nil
	}
	return ordered(c.op, cmp.Compare(number, c.number)), nil
}

// ordered reports whether the operator holds between two values; order is negative if the first
// is less, 0 if they are equal, positive if it is greater.
func ordered(op string, order int) bool {
	switch op {
	case "==":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default: // >=
		return order >= 0
	}
}

// float parses a number as Python's float does: decimal, with _ between digits, inf and nan.
func float(word string) (float64, error) {
	digits := joined(word)
	if strings.ContainsAny(digits, "xX_") {
		return 0, fmt.Errorf("%q is not a number", word)
	}
	number, err := strconv.ParseFloat(digits, 64)
	if err != nil && !math.IsInf(number, 0) {
		return 0, fmt.Errorf("%q is not a number", word)
	}
	return number, nil
}

// integer parses an integer as Python's int does. A number too large for int64 becomes the
// largest int64.
func integer(word string) (int64, error) {
	number, err := strconv.ParseInt(joined(word), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%q is not an integer", word)
	}
	return number, nil
}

// joined returns a number without the blanks around it and the _ between its digits.
func joined(word string) string {
	digits := []byte(word)
	for n := len(digits) - 2; n > 0; n-- {
		if digits[n] == '_' && digit(digits[n-1]) && digit(word[n+1]) {
			digits = append(digits[:n], digits[n+1:]...)
		}
	}
	return strings.TrimFunc(string(digits), blank)
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// space reports whether Python splits words at c.
func space(c rune) bool {
	return c >= '\x1c' && c <= '\x1f' || blank(c)
}

// blank reports whether Python's float ignores c around a number.
func blank(c rune) bool {
	return c >= '\u2000' && c <= '\u200a' || strings.ContainsRune(" \t\n\v\f\r\u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000", c)
}
