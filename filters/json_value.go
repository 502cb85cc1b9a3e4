// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// flags is the result of the operator not: the negation of each argument.
type flags []bool

func (f flags) any() bool { return slices.Contains(f, true) }

// truth reports whether Python treats a value as true.
func truth(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case flags:
		return len(v) > 0
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	default: // a large number
		return true
	}
}

// compared reports whether a comparison of two values holds. It returns an error if Python
// cannot order them; equality works for any two.
func compared(operator string, a, b any) (bool, error) {
	if operator == "=" || operator == "in" {
		return equal(a, b), nil
	}
	order, err := ordering(a, b)
	return err == nil && ordered(operator, order), err
}

// equal reports whether two values of JSON are equal; numbers are compared by value.
func equal(a, b any) bool {
	switch a := a.(type) {
	case []any:
		other, same := b.([]any)
		return same && slices.EqualFunc(a, other, equal)
	case map[string]any:
		other, same := b.(map[string]any)
		return same && maps.EqualFunc(a, other, equal)
	case nil:
		return b == nil
	}
	order, err := ordering(a, b)
	return err == nil && order == 0
}

// ordering compares two values. A bool counts as 0 or 1.
func ordering(a, b any) (int, error) {
	switch x := a.(type) {
	case int64:
		if y, same := b.(int64); same {
			return cmp.Compare(x, y), nil
		}
	case string:
		if y, same := b.(string); same {
			return strings.Compare(x, y), nil
		}
	case flags:
		if y, same := b.(flags); same {
			return slices.CompareFunc(x, y, func(p, q bool) int { return cmp.Compare(bit(p), bit(q)) }), nil
		}
	}
	x, y := amount(a), amount(b)
	if x == nil || y == nil {
		return 0, fmt.Errorf("%s and %s have no order", kind(a), kind(b))
	}
	return x.Cmp(y), nil
}

// amount returns a number without rounding; nil for anything else.
func amount(value any) *big.Float {
	switch v := value.(type) {
	case bool:
		return new(big.Float).SetInt64(bit(v))
	case int64:
		return new(big.Float).SetInt64(v)
	case *big.Int:
		return new(big.Float).SetInt(v)
	case float64:
		return new(big.Float).SetFloat64(v)
	default:
		return nil
	}
}

func bit(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// kind returns the name of the type of a value.
func kind(value any) string {
	switch value.(type) {
	case bool:
		return "a truth value"
	case string:
		return "a text"
	case flags, []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
