// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// The limits of filters that are accepted. Filters written by hand have about ten parts; 256 allow
// a list of hosts or racks with names of 60 characters.
const (
	maxFilterDepth = 64  // expressions within expressions
	maxFilterParts = 256 // expressions and arguments as written
	maxFilterBytes = 16 << 10
	// maxFilterSteps limits the time to match all hosts once to some tens of milliseconds.
	maxFilterSteps = 1_000_000
)

var operators = []string{"=", "==", "!=", "<", "<=", ">", ">=", "in", "not", "and", "or"}

// ParseFilter compiles a filter for the hosts of s. raw is JSON: the expression, or a string that
// contains it as JSON. Empty input, null and "" match every host. Without seesHidden, no host has
// hidden properties.
//
// Errors are Invalid faults of the field host_properties. A filter that would need too many steps
// to match all hosts of s is an error too.
func ParseFilter(raw []byte, s *Snapshot, seesHidden bool) (*Filter, error) {
	if len(raw) > maxFilterBytes {
		return nil, invalid("has %d bytes; at most %d are allowed", len(raw), maxFilterBytes)
	}
	if number := inexact(raw); number != "" {
		return nil, invalid("%s is too large to be compared exactly; a property with such numbers has texts, so write it in quotes", number)
	}
	p := filterParser{snapshot: s, seesHidden: seesHidden, mostParts: maxFilterParts}
	return p.filter(raw, maxFilterSteps)
}

// ParseStoredFilter compiles the filter of a reservation as ParseFilter does, but of any size
// and with ten times as many steps: it was accepted for fewer hosts, or by an earlier version.
func ParseStoredFilter(raw []byte, s *Snapshot, seesHidden bool) (*Filter, error) {
	p := filterParser{snapshot: s, seesHidden: seesHidden, mostParts: math.MaxInt}
	return p.filter(raw, 10*maxFilterSteps)
}

// decodeFilter returns the outermost expression; nil matches every host.
func decodeFilter(raw []byte) ([]any, error) {
	decoded, err := decodeJSON(raw)
	if err != nil {
		return nil, err
	}
	if text, ok := decoded.(string); ok {
		if decoded, err = decodeJSON([]byte(text)); err != nil {
			return nil, err
		}
	}
	switch query := decoded.(type) {
	case nil:
		return nil, nil
	case []any:
		if len(query) == 0 {
			return nil, invalid(`[] is not an expression; write "" for every host, or a list such as [">=", "$memory_mb", 65536]`)
		}
		return query, nil
	default:
		return nil, invalid(`%s is not an expression; write a list such as [">=", "$memory_mb", 65536]`, show(query))
	}
}

// decodeJSON returns the value in raw; nil if raw is empty.
func decodeJSON(raw []byte) (any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	var decoded any
	if err := json.Unmarshal(raw, &decoded); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, invalid("%s contains a number that is too large", shorten(string(raw)))
		}
		return nil, invalid("%s is not JSON: %v", shorten(string(raw)), err)
	}
	return decoded, nil
}

// SameFilter reports whether two filters are one, in whatever form they are written: with other blanks, or as a string.
// Empty input, null and "" are the filter that matches every host.
func SameFilter(one, other []byte) bool {
	if bytes.Equal(one, other) {
		return true
	}
	a, errA := decodeFilter(one)
	b, errB := decodeFilter(other)
	return errA == nil && errB == nil && reflect.DeepEqual(a, b)
}

// PropertiesIn returns the names of the properties in a filter, without looking at hosts; nil for
// what is no filter.
func PropertiesIn(raw []byte) (names []string) {
	query, err := decodeFilter(raw)
	if err != nil {
		return nil
	}
	var walk func(part any)
	walk = func(part any) {
		switch part := part.(type) {
		case []any:
			for _, inner := range part {
				walk(inner)
			}
		case string:
			if name, is := strings.CutPrefix(part, "$"); is && name != "" {
				names = append(names, name)
			}
		}
	}
	walk(query)
	return names
}

type filterParser struct {
	snapshot   *Snapshot
	seesHidden bool
	parts      int
	mostParts  int
	steps      int // upper bound on one host; see argument.steps
	timely     bool
	named      map[string]bool
	unknown    []string
	bare       string
}

// filter returns the filter in raw. An Invalid fault explains what is wrong, or that it may need more
// than mostSteps steps on all hosts.
func (p *filterParser) filter(raw []byte, mostSteps int) (*Filter, error) {
	query, err := decodeFilter(raw)
	if err != nil {
		return nil, err
	}
	if query == nil {
		return &Filter{}, nil
	}
	p.named = make(map[string]bool)
	match, err := p.expression(query, 1)
	if err != nil {
		return nil, err
	}
	if needed := p.steps * p.snapshot.Len(); needed > mostSteps {
		return nil, invalid("needs %d steps, %d on each of %d hosts; at most %d are allowed: use fewer expressions and values",
			needed, p.steps, p.snapshot.Len(), mostSteps)
	}
	slices.Sort(p.unknown)
	return &Filter{match: match, unknown: slices.Compact(p.unknown), timely: p.timely, named: p.named, bare: p.bare}, nil
}

// expression returns the predicate of an expression such as ["and", …], which depth-1 others contain.
func (p *filterParser) expression(expr []any, depth int) (predicate, error) {
	if depth > maxFilterDepth {
		return nil, invalid("nests more than %d expressions; flatten it", maxFilterDepth)
	}
	if err := p.count(); err != nil {
		return nil, err
	}
	p.steps++
	if len(expr) == 0 {
		return nil, invalid("[] is not an expression; an expression begins with an operator, one of %s", strings.Join(operators, " "))
	}
	operator, ok := expr[0].(string)
	if !ok {
		return nil, invalid("%s begins with %s; an expression begins with an operator, one of %s",
			show(expr), show(expr[0]), strings.Join(operators, " "))
	}
	switch operator {
	case "=", "==", "!=", "<", "<=", ">", ">=":
		return p.comparison(operator, expr)
	case "in":
		return p.membership(expr)
	case "not", "and", "or":
		return p.combination(operator, expr, depth)
	default:
		return nil, invalid("%s: %s; the operators are %s",
			show(expr), fault.Unknown("operator", operator, operators), strings.Join(operators, " "))
	}
}

// combination returns the predicate of not, and, or.
func (p *filterParser) combination(operator string, expr []any, depth int) (predicate, error) {
	args := expr[1:]
	if operator == "not" && len(args) != 1 {
		return nil, arity(expr, "not takes exactly one expression")
	}
	if len(args) == 0 {
		return nil, arity(expr, operator+" takes one or more expressions")
	}
	parts := make([]predicate, len(args))
	for i, arg := range args {
		inner, ok := arg.([]any)
		if !ok {
			return nil, invalid(`%s passes %s to %s, which takes expressions such as ["=", "$zone", "az1"]`,
				show(expr), show(arg), operator)
		}
		part, err := p.expression(inner, depth+1)
		if err != nil {
			return nil, err
		}
		parts[i] = part
	}
	switch operator {
	case "not":
		return negate(parts[0]), nil
	case "and":
		return all(parts), nil
	default:
		return anyOf(parts), nil
	}
}

// comparison returns the predicate of an operator with two arguments of one type.
func (p *filterParser) comparison(operator string, expr []any) (predicate, error) {
	if len(expr) != 3 {
		return nil, arity(expr, operator+" takes exactly two")
	}
	args, err := p.arguments(expr)
	if err != nil {
		return nil, err
	}
	ordering := strings.ContainsAny(operator, "<>")
	having := args[0].raw == args[1].raw && comparesEqual(operator) // which also a list may be
	for _, a := range args {
		switch {
		case a.kind == KindList && having:
			p.steps += p.snapshot.longest[strings.TrimPrefix(a.text, "$")]
		case a.kind == KindList:
			return nil, invalid(`%s compares %s, which is a list; use ["in", "…", "%s"]`, show(expr), a.text, a.text)
		case a.kind == KindBool && ordering:
			return nil, invalid("%s orders %s, which is a bool; %s is for numbers and strings", show(expr), a.text, operator)
		}
	}
	if err := sameKind(expr, args); err != nil {
		return nil, err
	}
	p.addSteps(args)
	return compare(operator, args[0].of, args[1].of), nil
}

func comparesEqual(operator string) bool { return operator == "=" || operator == "==" }

// membership returns the predicate of in.
func (p *filterParser) membership(expr []any) (predicate, error) {
	if len(expr) < 3 {
		return nil, arity(expr, "in takes two or more")
	}
	args, err := p.arguments(expr)
	if err != nil {
		return nil, err
	}
	if first := args[0]; first.kind == KindList {
		return nil, invalid(`%s looks for %s, which is a list; use ["in", "…", "%s"]`, show(expr), first.text, first.text)
	}
	if err := sameKind(expr, args); err != nil {
		return nil, err
	}
	args = append(args[:1], distinct(args[1:])...)
	p.addSteps(args)
	rest := make([]operand, 0, len(args)-1)
	for _, a := range args[1:] {
		rest = append(rest, a.of)
	}
	return among(args[0].of, rest), nil
}

// distinct returns each argument once, in order of first appearance.
func distinct(args []argument) []argument {
	seen := make(map[any]bool, len(args))
	return slices.DeleteFunc(args, func(a argument) bool {
		repeated := seen[a.raw]
		seen[a.raw] = true
		return repeated
	})
}

// argument is a compiled argument of a comparison.
type argument struct {
	raw  any    // a float64, a bool or a string
	text string // as written
	kind Kind   // "" for a property that no host has
	of   operand
	// steps is the cost of reading the argument: 1, and for a list additionally the comparisons
	// of a binary search among its elements.
	steps int
}

// addSteps adds the steps of a comparison of the arguments.
func (p *filterParser) addSteps(args []argument) {
	for _, a := range args {
		p.steps += a.steps
	}
}

// comparedKind returns the type that is compared; for a list, the type of its elements.
func (a argument) comparedKind() Kind {
	if a.kind == KindList {
		return KindString
	}
	return a.kind
}

// sameKind returns an error if the arguments have different types. A property that no host has
// fits every type.
func sameKind(expr []any, args []argument) error {
	var known *argument
	for i := range args {
		a := &args[i]
		switch {
		case a.kind == "":
		case known == nil:
			known = a
		case a.comparedKind() != known.comparedKind():
			return invalid("%s compares %s, which is a %s, with %s, which is a %s",
				show(expr), known.text, known.kind, a.text, a.kind)
		}
	}
	return nil
}

// arguments returns the arguments of an expression, with their types and how many steps each costs.
func (p *filterParser) arguments(expr []any) ([]argument, error) {
	args := make([]argument, 0, len(expr)-1)
	for _, raw := range expr[1:] {
		if err := p.count(); err != nil {
			return nil, err
		}
		a := argument{raw: raw, text: show(raw), steps: 1}
		switch v := raw.(type) {
		case float64:
			a.kind, a.of = KindNumber, constant(NumberValue(v))
		case bool:
			a.kind, a.of = KindBool, constant(BoolValue(v))
		case string:
			p.named[v] = true
			name, isProperty := strings.CutPrefix(v, "$")
			switch {
			case !isProperty:
				a.kind, a.of = KindString, constant(StringValue(v))
			case name == "":
				return nil, invalid("%s: $ needs the name of a property after it", show(expr))
			default:
				a.text = shorten(v)
				a.kind, a.of = p.property(name)
				if a.kind == KindList {
					a.steps += bits.Len(uint(p.snapshot.longest[name]))
				}
			}
		default:
			return nil, invalid(`%s compares %s; an argument is a number, a string, true, false or "$property"`, show(expr), a.text)
		}
		args = append(args, a)
	}
	p.noteBare(expr[1:])
	return args, nil
}

// noteBare keeps the first text of a comparison without any property.
func (p *filterParser) noteBare(args []any) {
	var texts []string
	for _, raw := range args {
		if text, is := raw.(string); is {
			texts = append(texts, text)
		}
	}
	isProperty := func(text string) bool { return strings.HasPrefix(text, "$") }
	if p.bare == "" && len(texts) > 0 && !slices.ContainsFunc(texts, isProperty) {
		p.bare = shorten(texts[0])
	}
}

// property returns the type of a property and how to read it of a host. It notes an unknown one.
func (p *filterParser) property(name string) (Kind, operand) {
	kind, of := p.snapshot.lookup(name, p.seesHidden)
	if kind == "" {
		p.unknown = append(p.unknown, name)
	}
	if b := builtInNamed(name); b != nil {
		p.timely = p.timely || b.timely
	}
	return kind, of
}

// count counts a part of the filter, and returns an Invalid fault if there are too many.
func (p *filterParser) count() error {
	if p.parts++; p.parts > p.mostParts {
		return invalid("has more than %d expressions and values", p.mostParts)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fault.Field("host_properties", format, args...)
}

// arity returns the fault that the expression has the wrong number of arguments.
func arity(expr []any, rule string) error {
	count := fmt.Sprintf("%d arguments", len(expr)-1)
	if len(expr) == 2 {
		count = "1 argument"
	}
	return invalid("%s has %s; %s", show(expr), count, rule)
}

// show returns a part of the filter for a message, as the user wrote it, shortened.
func show(part any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	// Decoded JSON can always be encoded again.
	_ = encoder.Encode(part)
	return shorten(strings.TrimSpace(text.String()))
}

// shorten returns text with at most 120 characters, for messages.
func shorten(text string) string {
	const most = 120
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
