// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// The limits of queries that are translated.
const (
	longestQuery = 16 << 10 // bytes
	deepestQuery = 32       // expressions within expressions
)

// queries translates queries in Blazar's language to filters of Almanac (inventory.Filter), whose
// comparisons want two values of one type. Blazar compares texts: the constant gets the type that
// the property has on the hosts.
type queries struct {
	hosts      *inventory.Snapshot
	seesHidden bool
}

// Filter returns the filter of queries that were written for Blazar; empty for every host. A host must
// match all of them. An Invalid fault states what cannot be translated.
func Filter(hosts *inventory.Snapshot, written ...string) (string, error) {
	return queries{hosts: hosts, seesHidden: true}.filter(written...)
}

// written returns a query as its owner wrote it: the text, or a list as JSON.
func (o Object) written(key string) (string, error) {
	switch value := o[key].(type) {
	case nil:
		return "", nil
	case string:
		if nothing(value) {
			return "", nil
		}
		return value, nil
	case []any:
		return JSON(value), nil
	}
	return "", requirements(JSON(o[key]), "a query is a list such as [\">=\", \"$vcpus\", \"4\"], or a text that contains one")
}

// sameQuery reports whether two queries are one, written as a text or as a list, with whatever blanks.
func sameQuery(a, b string) bool {
	plain := func(text string) string {
		if o, err := readJSON(text); err == nil {
			text = JSON(o)
		}
		if text = strings.TrimSpace(text); text == "[]" || text == "null" {
			return ""
		}
		return text
	}
	return a == b || plain(a) == plain(b)
}

// QueryFields returns the fields of the body of a lease that select hosts, in words; both if its
// reservations contain none, as in most changes.
func QueryFields(body Object) string {
	fields := []string{"hypervisor_properties", "resource_properties"}
	members, _ := body.objects("reservations") // a body of another form is refused elsewhere
	used := slices.DeleteFunc(slices.Clone(fields), func(field string) bool {
		return !slices.ContainsFunc(members, func(o Object) bool { return o.has(field) })
	})
	if len(used) > 0 {
		fields = used
	}
	return strings.Join(fields, " and ")
}

// filter returns the filter of both queries, which hosts must match; empty for every host.
func (q queries) filter(written ...string) (string, error) {
	var parts []any
	for _, text := range written {
		part, err := q.translated(text)
		if err != nil {
			return "", err
		}
		if part != nil {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return "", nil
	}
	whole := parts[0]
	if len(parts) > 1 {
		whole = append([]any{"and"}, parts...)
	}
	text := JSON(whole)
	if _, err := inventory.ParseFilter([]byte(text), q.hosts, q.seesHidden); err != nil {
		return "", requirements(strings.TrimSpace(strings.Join(written, " ")), fault.Of(err).Message)
	}
	return text, nil
}

// translated returns the expression of one query; nil for every host.
func (q queries) translated(text string) (any, error) {
	if len(text) > longestQuery {
		return nil, requirements(text, fmt.Sprintf("it has %d bytes; at most %d are allowed", len(text), longestQuery))
	}
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	query, err := readJSON(text)
	switch {
	case errors.Is(err, errFollowed):
		return nil, requirements(text, "it is more than one expression")
	case err != nil:
		return nil, requirements(text, "it is not JSON")
	}
	if list, is := query.([]any); query == nil || is && len(list) == 0 {
		return nil, nil
	}
	expression, err := q.expression(query, false, 1)
	if err != nil {
		return nil, requirements(text, fault.Of(err).Message)
	}
	return expression, nil
}

// requirements returns the error for a query that cannot be read, and why.
func requirements(query, why string) error {
	return fault.New(fault.Invalid, "Malformed requirements %s: %s", shorten(query), why)
}

func unreadable(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// opposites maps each comparison to the one that holds when it does not.
var opposites = map[string]string{"==": "!=", "=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

// expression translates one expression, or its opposite if negated. not is carried to the
// comparisons, because a host that lacks a property matches neither a comparison nor its opposite.
func (q queries) expression(value any, negated bool, depth int) (any, error) {
	list, _ := value.([]any)
	if len(list) == 0 {
		return nil, unreadable("%s is not an expression", show(value))
	}
	if depth > deepestQuery {
		return nil, unreadable("it nests more than %d expressions", deepestQuery)
	}
	operator, _ := list[0].(string)
	switch operator {
	case "and", "or":
		if len(list) == 1 {
			return nil, unreadable("%s joins nothing", operator)
		}
		if negated {
			operator = map[string]string{"and": "or", "or": "and"}[operator]
		}
		out := []any{operator}
		for _, part := range list[1:] {
			translated, err := q.expression(part, negated, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, translated)
		}
		return out, nil
	case "not":
		if len(list) != 2 {
			return nil, unreadable("not takes one expression")
		}
		return q.expression(list[1], !negated, depth+1)
	case "in":
		return q.membership(list, negated)
	}
	if opposites[operator] == "" {
		return nil, unreadable("%s does not begin with an operator: == = != < <= > >= in and or not", show(value))
	}
	if len(list) != 3 {
		return nil, unreadable("%s compares a name such as $vcpus with one value", operator)
	}
	if negated {
		operator = opposites[operator]
	}
	return q.comparison(operator, list[1], list[2])
}

// JSON returns the JSON of a value that has one, with < and > as they are.
func JSON(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // cannot fail for such a value
	return strings.TrimSuffix(text.String(), "\n")
}

// show returns a value as JSON, cut to a length that fits into a message.
func show(value any) string { return shorten(JSON(value)) }

// never and always are expressions that no host and every host matches.
var (
	never  = []any{"!=", 1, 1}
	always = []any{"=", 1, 1}
)

// having returns the expression for the hosts that have a property.
func having(property string) []any { return []any{"=", property, property} }

// comparison translates the comparison of a property with a constant.
func (q queries) comparison(operator string, left, right any) (any, error) {
	p, err := q.property(left)
	if err != nil {
		return nil, err
	}
	ordering := strings.ContainsAny(operator, "<>")
	switch {
	case p.kind == inventory.KindList:
		return nil, unreadable(`%s is a list; use ["in", "…", "%s"]`, left, left)
	case p.kind == inventory.KindBool && ordering:
		return nil, unreadable("%s is true or false, which %s does not order", left, operator)
	}
	value, fits, err := p.constant(right)
	switch {
	case err != nil:
		return nil, err
	case p.reservable:
		return truth((fits && value == true) == (operator != "!=")), nil
	case !fits && ordering:
		return nil, unreadable("%s is a %s, which %s does not compare with %s", left, p.kind, operator, show(right))
	case !fits && operator == "!=":
		return having(p.name), nil
	case !fits:
		return never, nil
	case operator == "!=":
		return []any{"and", having(p.name), []any{"!=", p.name, value}}, nil
	}
	return []any{operator, p.name, value}, nil
}

// truth returns the expression that matches all hosts, or none.
func truth(yes bool) any {
	if yes {
		return always
	}
	return never
}

// membership translates in: whether a property is among constants, or a constant is in a list.
func (q queries) membership(list []any, negated bool) (any, error) {
	if len(list) < 3 {
		return nil, unreadable("in takes a name or a value, and what it may be among")
	}
	if text, is := list[1].(string); !is || !strings.HasPrefix(text, "$") {
		return q.listed(list, negated)
	}
	p, err := q.property(list[1])
	if err != nil {
		return nil, err
	}
	if p.kind == inventory.KindList || p.reservable {
		return nil, unreadable("in does not look for %s", list[1])
	}
	out := []any{"in", p.name}
	for _, candidate := range list[2:] {
		value, fits, err := p.constant(candidate)
		if err != nil {
			return nil, err
		}
		if fits {
			out = append(out, value)
		}
	}
	switch none := len(out) == 2; {
	case negated && none:
		return having(p.name), nil
	case none:
		return never, nil
	case negated:
		return []any{"and", having(p.name), []any{"not", out}}, nil
	}
	return out, nil
}

// listed translates in for a constant and properties that are lists, such as $traits.
func (q queries) listed(list []any, negated bool) (any, error) {
	value, _, err := property{kind: inventory.KindString}.constant(list[1])
	if err != nil {
		return nil, err
	}
	out, all := []any{"in", value}, []any{"and"}
	for _, candidate := range list[2:] {
		p, err := q.property(candidate)
		if err != nil {
			return nil, err
		}
		if p.kind != inventory.KindList {
			return nil, unreadable(`%s is not a list; write ["in", "%s", %s]`, candidate, candidate, show(list[1]))
		}
		out, all = append(out, p.name), append(all, having(p.name))
	}
	if negated {
		return append(all, []any{"not", out}), nil
	}
	return out, nil
}
