// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
)

// term is a compiled part of a query: it returns its value for a host. An operator ignores
// arguments whose value is nil.
type term func(h *inventory.HostState) (any, error)

// errUntold is the error if a host's attribute is unknown.
var errUntold = errors.New("which Nova's API does not return")

// Limits of a query: the nesting of lists, at which Python fails too, and the digits of a
// number (Python's sys.int_info.default_max_str_digits).
const (
	deepestQuery = 200
	mostDigits   = 4300
)

// parseQuery parses a query: [operator, argument, …] as JSON. An argument is such a list, a
// value, or "$attribute" of a host. It rejects what Python accepts beyond JSON, such as NaN.
func parseQuery(text string) (term, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var query any
	if err := decoder.Decode(&query); err != nil {
		return nil, errors.New("it is not JSON")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after its JSON")
	}
	query, err := numbered(query, 0)
	if err != nil {
		return nil, err
	}
	if word, is := query.(string); is { // Python treats a text as a list of letters
		var letters []any
		for _, letter := range word {
			letters = append(letters, string(letter))
		}
		query = letters
	}
	if list, is := query.([]any); is {
		return operation(list)
	}
	if truth(query) {
		return nil, errors.New("it is not a list")
	}
	return constant(true), nil
}

// numbered returns a JSON value in which numbers are int64, *big.Int or float64, as Python parses
// them.
func numbered(value any, depth int) (_ any, err error) {
	if depth > deepestQuery {
		return nil, fmt.Errorf("it is nested more than %d deep", deepestQuery)
	}
	switch v := value.(type) {
	case json.Number:
		return numeric(v.String())
	case []any:
		for n := range v {
			if v[n], err = numbered(v[n], depth+1); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range v {
			if v[name], err = numbered(v[name], depth+1); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// numeric returns the number in text as Python reads it: whole of any size, or a float.
func numeric(text string) (any, error) {
	if strings.ContainsAny(text, ".eE") {
		number, _ := strconv.ParseFloat(text, 64) // infinite if it is too large
		return number, nil
	}
	if number, err := strconv.ParseInt(text, 10, 64); err == nil {
		return number, nil
	}
	if len(text) > mostDigits {
		return nil, fmt.Errorf("a number has more than %d digits", mostDigits)
	}
	number, _ := new(big.Int).SetString(text, 10)
	return number, nil
}

func constant(value any) term { return func(*inventory.HostState) (any, error) { return value, nil } }

var operators = []string{"=", "<", ">", "in", "<=", ">=", "not", "or", "and"}

// operation compiles a list. An empty list is true.
func operation(list []any) (term, error) {
	if len(list) == 0 {
		return constant(true), nil
	}
	operator, is := list[0].(string)
	if !is || !slices.Contains(operators, operator) {
		return nil, fmt.Errorf("there is no operator %v", list[0])
	}
	arguments := make([]term, len(list)-1)
	for n, value := range list[1:] {
		var err error
		if arguments[n], err = argument(value); err != nil {
			return nil, err
		}
	}
	return func(h *inventory.HostState) (any, error) { return apply(operator, arguments, h) }, nil
}

// argument returns the term for an argument of the query: an operation, an attribute or a constant.
func argument(value any) (term, error) {
	switch v := value.(type) {
	case []any:
		return operation(v)
	case string:
		if path, is := strings.CutPrefix(v, "$"); is {
			return attributeTerm(path)
		}
		if v == "" {
			return constant(nil), nil
		}
	}
	return constant(value), nil
}

// attributeTerm compiles the name of an attribute, with a dot before each name of a part of it.
func attributeTerm(path string) (term, error) {
	name, _, inner := strings.Cut(path, ".")
	of := attributes[name]
	switch {
	case name == ioWorkload:
		return constant(nil), nil
	case of != nil && inner:
		return nil, fmt.Errorf("%s of a host has no parts", name)
	case of != nil:
	case slices.Contains(unknownAttributes, name) || strings.HasPrefix(name, "__"):
		of = func(*inventory.HostState) (fact, bool) { return fact{}, false }
	default:
		return constant(nil), nil
	}
	return func(h *inventory.HostState) (any, error) {
		value, told := of(h)
		switch {
		case !told:
			return nil, fmt.Errorf("$%s, %w", path, errUntold)
		case value.counted:
			return value.number, nil
		default:
			return value.text, nil
		}
	}, nil
}

// apply evaluates an operator. It evaluates all arguments, so that it never skips one that
// fails.
func apply(operator string, arguments []term, h *inventory.HostState) (any, error) {
	var first any
	count, all, some := 0, true, false
	flipped := flags{}
	for _, argument := range arguments {
		value, err := argument(h)
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		count++
		is := truth(value)
		switch operator {
		case "not":
			flipped = append(flipped, !is)
			continue
		case "and", "or":
		default:
			if count == 1 {
				first = value
				continue
			}
			if is, err = compared(operator, first, value); err != nil {
				return nil, err
			}
		}
		all, some = all && is, some || is
	}
	switch operator {
	case "not":
		return flipped, nil
	case "or":
		return some, nil
	case "and":
		return all, nil
	case "in":
		return count > 1 && some, nil
	default:
		return count > 1 && all, nil
	}
}
