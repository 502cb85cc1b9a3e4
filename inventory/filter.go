// SPDX-License-Identifier: Apache-2.0

package inventory

import "slices"

// Filter is a compiled host_properties expression, which selects hosts.
//
// The language is that of Nova's JsonFilter
// (nova/scheduler/filters/json_filter.py) without its silent matches:
//
//	["and", [">=", "$memory_mb", 65536], ["=", "$gpu", "a100"]]
//
// An expression is a list: an operator and its arguments.
//
//	= == != < > <= >=   two arguments
//	in                  two or more: is the first among the rest? A list property
//	                    among the rest stands for its elements
//	not                 one expression
//	and or              one or more expressions
//
// An argument is a number, a string, true or false, or "$name" for a property.
// All arguments of one comparison have one type. Lists stand only in the rest of
// in; < > <= >= order numbers, and strings by their bytes.
//
// A property that some hosts have and this one has not equals nothing: every
// comparison with it is false, except != which is true, as is not around the
// others. A property that no host has makes the whole filter match no host.
type Filter struct {
	match   predicate // nil matches every host
	unknown []string
	timely  bool
	named   map[string]bool // the strings among the arguments, as they were written
	bare    string          // what Bare returns
}

// Matches reports whether the filter selects h. If ahead is true, it judges a later time, when the
// present instances may be gone: $free_ram_mb and $free_disk_mb are then the host's capacity.
func (f *Filter) Matches(h *Host, ahead bool) bool {
	if len(f.unknown) > 0 {
		return false
	}
	return f.match == nil || f.match(h, ahead)
}

// Timely reports whether the filter uses a property that differs with ahead.
func (f *Filter) Timely() bool { return f.timely }

// Mentions reports whether text is an argument of the filter: "$name" for a property, or a
// string.
func (f *Filter) Mentions(text string) bool { return f.named[text] }

// Unknown returns the properties in the filter that no host has or that are hidden from the
// caller, sorted, each once. A filter with any of them matches no host.
func (f *Filter) Unknown() []string { return slices.Clone(f.unknown) }

// Bare returns the first text of a comparison without any property, such as gpu of
// ["=", "gpu", "a100"]; "" if each comparison has one. Such a comparison has the same result on
// every host, and often lacks the $ of a property.
func (f *Filter) Bare() string { return f.bare }

// KindOf returns the type of a property; "" for one that no host has, and for a hidden one if
// seesHidden is false.
func (s *Snapshot) KindOf(name string, seesHidden bool) Kind {
	kind, _ := s.lookup(name, seesHidden)
	return kind
}

// Property returns how to read a property from a host whose value stays until somebody changes the host; nil for one that no
// host has, for a hidden one if seesHidden is false, and for one that depends on the present instances.
func (s *Snapshot) Property(name string, seesHidden bool) func(h *Host) Value {
	kind, of := s.lookup(name, seesHidden)
	if b := builtInNamed(name); kind == "" || b != nil && b.timely {
		return nil
	}
	return func(h *Host) Value { return of(h, true) }
}

type (
	predicate func(h *Host, ahead bool) bool
	operand   func(h *Host, ahead bool) Value
)

// comparisons maps each operator to the outcomes of Value.Compare for which it holds.
var comparisons = map[string]func(order int) bool{
	"=":  func(order int) bool { return order == 0 },
	"==": func(order int) bool { return order == 0 },
	"!=": func(order int) bool { return order != 0 },
	"<":  func(order int) bool { return order < 0 },
	">":  func(order int) bool { return order > 0 },
	"<=": func(order int) bool { return order <= 0 },
	">=": func(order int) bool { return order >= 0 },
}

// compare returns the comparison of two operands. It checks their types again, although the parser
// did, because the filter may be applied to hosts of a later snapshot.
func compare(operator string, left, right operand) predicate {
	holds, unlike := comparisons[operator], operator == "!="
	return func(h *Host, ahead bool) bool {
		l, r := left(h, ahead), right(h, ahead)
		if l.kind == "" || l.kind != r.kind {
			return unlike
		}
		return holds(l.Compare(r))
	}
}

// among matches hosts on which one of the others equals first, or is a list that contains it.
func among(first operand, rest []operand) predicate {
	return func(h *Host, ahead bool) bool {
		value := first(h, ahead)
		if value.kind == "" {
			return false
		}
		for _, candidate := range rest {
			c := candidate(h, ahead)
			if c.kind == KindList && value.kind == KindString && c.holds(value.text) || value.Equal(c) {
				return true
			}
		}
		return false
	}
}

func negate(p predicate) predicate {
	return func(h *Host, ahead bool) bool { return !p(h, ahead) }
}

// all matches hosts that each part matches.
func all(parts []predicate) predicate {
	return func(h *Host, ahead bool) bool {
		for _, p := range parts {
			if !p(h, ahead) {
				return false
			}
		}
		return true
	}
}

// anyOf matches hosts that one part matches.
func anyOf(parts []predicate) predicate {
	return func(h *Host, ahead bool) bool {
		for _, p := range parts {
			if p(h, ahead) {
				return true
			}
		}
		return false
	}
}

func constant(v Value) operand {
	return func(*Host, bool) Value { return v }
}
