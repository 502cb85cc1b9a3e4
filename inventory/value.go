// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Kind is the type of a property.
type Kind string

// The types a property can have.
const (
	KindNumber Kind = "number"
	KindString Kind = "string"
	KindBool   Kind = "bool"
	KindList   Kind = "list" // of strings
)

// Value is the value of a property on a host. The zero Value, whose kind is "", is the absence
// of a value.
type Value struct {
	kind   Kind
	number float64 // of a Bool: 1 is true
	text   string
	list   []string
	sorted []string // the elements of list, sorted for lookup
}

// NumberValue returns a Value of kind Number.
func NumberValue(n float64) Value { return Value{kind: KindNumber, number: n} }

// StringValue returns a Value of kind String.
func StringValue(s string) Value { return Value{kind: KindString, text: s} }

// BoolValue returns a Value of kind Bool.
func BoolValue(b bool) Value {
	if b {
		return Value{kind: KindBool, number: 1}
	}
	return Value{kind: KindBool}
}

// ListValue returns a Value of kind List that keeps the order of the elements.
func ListValue(elements []string) Value {
	list := slices.Clone(elements)
	return Value{kind: KindList, list: list, sorted: inOrder(list)}
}

// inOrder returns the elements sorted; list itself if it is.
func inOrder(list []string) []string {
	if slices.IsSorted(list) {
		return list
	}
	return slices.Sorted(slices.Values(list))
}

// sortedList returns the Value of a sorted list, without a copy.
func sortedList(list []string) Value { return Value{kind: KindList, list: list, sorted: list} }

// holds reports whether text is an element of a List.
func (v Value) holds(text string) bool {
	_, found := slices.BinarySearch(v.sorted, text)
	return found
}

// Kind returns the type of v.
func (v Value) Kind() Kind { return v.kind }

// Any returns v as float64, string, bool or []string (never nil) for encoding, and nil for the
// zero Value.
func (v Value) Any() any {
	switch v.kind {
	case KindNumber:
		return v.number
	case KindString:
		return v.text
	case KindBool:
		return v.number == 1
	case KindList:
		return append([]string{}, v.list...)
	default:
		return nil
	}
}

// MarshalJSON returns the number, string, bool or list of strings; null for the zero Value.
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(v.Any()) }

// UnmarshalJSON reads what MarshalJSON returns.
func (v *Value) UnmarshalJSON(raw []byte) error {
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return err
	}
	var ok bool
	if *v, ok = ValueOf(plain); !ok {
		return fmt.Errorf("%s is not a value of a property", raw)
	}
	return nil
}

// ValueOf returns the Value of decoded JSON: a float64, a string, a bool, a list of strings, or
// nil for the zero Value. It reports false for anything else.
func ValueOf(plain any) (Value, bool) {
	switch plain := plain.(type) {
	case nil:
		return Value{}, true
	case float64:
		return NumberValue(plain), true
	case string:
		return StringValue(plain), true
	case bool:
		return BoolValue(plain), true
	case []any:
		elements := make([]string, len(plain))
		for i, element := range plain {
			var ok bool
			if elements[i], ok = element.(string); !ok {
				return Value{}, false
			}
		}
		return ListValue(elements), true
	}
	return Value{}, false
}

// Compare orders values: by kind, then numbers and strings by size, false before true, and
// lists element by element.
func (v Value) Compare(o Value) int {
	if c := cmp.Compare(v.kind, o.kind); c != 0 {
		return c
	}
	switch v.kind {
	case KindString:
		return cmp.Compare(v.text, o.text)
	case KindList:
		return slices.Compare(v.list, o.list)
	default:
		return cmp.Compare(v.number, o.number)
	}
}

// Equal reports whether kind and value are the same.
func (v Value) Equal(o Value) bool { return v.Compare(o) == 0 }
