// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

const (
	// maxProblems is the largest number of problems of a file that one error lists.
	maxProblems = 20
	// maxAmount and maxNumber are the largest numbers in a file, so that sums and unit conversions
	// cannot overflow.
	maxAmount = 1 << 40
	maxNumber = 1e18
)

// yamlReader reads a YAML document strictly and collects all problems, so that an operator sees all
// mistakes at once. After a problem its methods continue with a zero value.
type yamlReader struct {
	path     string
	problems []error
}

func (r *yamlReader) fail(at ast.Node, format string, args ...any) {
	r.failAt(lineOf(at), format, args...)
}

func (r *yamlReader) failAt(line int, format string, args ...any) {
	r.problems = append(r.problems, fault.New(fault.Invalid, "%s:%d: %s", r.path, line, fmt.Sprintf(format, args...)))
}

func (r *yamlReader) err() error {
	return errors.Join(r.problems[:min(len(r.problems), maxProblems)]...)
}

// document returns the only document of a file; nil if there is none.
func (r *yamlReader) document(raw []byte) ast.Node {
	file, err := parser.ParseBytes(raw, 0)
	if err != nil {
		line := 1
		if syntax, ok := errors.AsType[yaml.Error](err); ok && syntax.GetToken() != nil {
			line = syntax.GetToken().Position.Line
			err = errors.New(syntax.GetMessage())
		}
		r.failAt(line, "is not YAML: %v", err)
		return nil
	}
	switch {
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		r.failAt(1, "the file is empty; it needs the key hosts")
		return nil
	case len(file.Docs) > 1:
		r.fail(file.Docs[1].Body, "the file holds a second document; one is read")
		return nil
	}
	return file.Docs[0].Body
}

// lineOf returns the line of a node of the file; 1 if it has none.
func lineOf(node ast.Node) int {
	if node == nil || node.GetToken() == nil {
		return 1
	}
	return node.GetToken().Position.Line
}

// section is a mapping of the document; the zero section has no fields.
type section struct {
	r      *yamlReader
	node   ast.Node
	prefix string // of its keys in messages, such as "power."
	fields map[string]ast.Node
}

// section reads node as a mapping; what is its name in messages. Keys that are not in known are
// problems; a nil known allows all.
func (r *yamlReader) section(node ast.Node, what string, known []string) section {
	s := section{r: r, node: node, fields: make(map[string]ast.Node)}
	mapping, ok := node.(*ast.MappingNode)
	if !ok {
		r.fail(node, "%s must be a mapping of keys to values, not %s", what, describe(node))
		return s
	}
	for _, pair := range mapping.Values {
		key, ok := pair.Key.(*ast.StringNode)
		switch {
		case !ok:
			r.fail(pair.Key, "a key of %s must be a plain word, not %s", what, describe(pair.Key))
		case known != nil && !slices.Contains(known, key.Value):
			r.fail(pair.Key, "%s", fault.Unknown("key", key.Value, known))
		default:
			s.fields[key.Value] = pair.Value
		}
	}
	return s
}

// section returns the section below key; an empty one if it is missing.
func (s section) section(key string, known []string) section {
	node, ok := s.fields[key]
	if !ok {
		return section{r: s.r}
	}
	inner := s.r.section(node, s.prefix+key, known)
	inner.prefix = s.prefix + key + "."
	return inner
}

func (s section) has(key string) bool { return s.fields[key] != nil }

// require records a problem for each of the keys that is absent.
func (s section) require(keys ...string) {
	if _, isMapping := s.node.(*ast.MappingNode); !isMapping {
		return
	}
	for _, key := range keys {
		if !s.has(key) {
			s.r.fail(s.node, "%s%s is required", s.prefix, key)
		}
	}
}

// wrong records the problem that the value of key is not what want describes.
func (s section) wrong(key, want string) {
	s.r.fail(s.fields[key], "%s%s must be %s, not %s", s.prefix, key, want, describe(s.fields[key]))
}

// list returns the elements of the list at key; none if it is missing or not a list.
func (s section) list(key string) []ast.Node {
	node, ok := s.fields[key]
	if !ok {
		return nil
	}
	sequence, ok := node.(*ast.SequenceNode)
	if !ok {
		s.wrong(key, "a list")
		return nil
	}
	return sequence.Values
}

// text returns the string at key; "" if it is missing or not a string.
func (s section) text(key string) string {
	node, ok := s.fields[key]
	if !ok {
		return ""
	}
	text, ok := textOf(node)
	if !ok {
		s.wrong(key, "a string (put it in quotes)")
	}
	return text
}

// texts returns the list of strings at key; none if it is missing or has other elements.
func (s section) texts(key string) []string {
	var texts []string
	for _, node := range s.list(key) {
		text, ok := textOf(node)
		if !ok {
			s.r.fail(node, "%s%s must hold strings (put them in quotes), not %s", s.prefix, key, describe(node))
			return nil
		}
		texts = append(texts, text)
	}
	return texts
}

// truth returns the bool at key; otherwise if it is missing or not a bool.
func (s section) truth(key string, otherwise bool) bool {
	node, ok := s.fields[key]
	if !ok {
		return otherwise
	}
	truth, ok := node.(*ast.BoolNode)
	if !ok {
		s.wrong(key, "true or false")
		return otherwise
	}
	return truth.Value
}

// whole reads a whole number that must be at least least; 0 if the key is absent.
func (s section) whole(key string, least int64) int64 {
	node, ok := s.fields[key]
	if !ok {
		return 0
	}
	number, ok := s.readNumber(key, node, "a whole number")
	if !ok {
		return 0
	}
	if number != math.Trunc(number) {
		s.wrong(key, "a whole number")
		return 0
	}
	if number < float64(least) || number > maxAmount {
		s.r.fail(node, "%s%s is %s; it must be at least %d and at most %d", s.prefix, key, node.GetToken().Value, least, int64(maxAmount))
		return 0
	}
	return int64(number)
}

// number reads a number that must not be negative; 0 if the key is absent.
func (s section) number(key string) float64 {
	node, ok := s.fields[key]
	if !ok {
		return 0
	}
	number, ok := s.readNumber(key, node, "a number")
	if !ok {
		return 0
	}
	if number < 0 || number > maxNumber {
		s.r.fail(node, "%s%s is %s; it must be at least 0 and at most %g", s.prefix, key, node.GetToken().Value, maxNumber)
		return 0
	}
	return number
}

// readNumber reads a number; want is a word for it in messages. One with a zero before it is ambiguous:
// YAML 1.1 reads 010 as 8, YAML 1.2 as 10.
func (s section) readNumber(key string, node ast.Node, want string) (float64, bool) {
	number, ok := numberOf(node)
	switch text := node.GetToken().Value; {
	case !ok:
		s.wrong(key, want)
	case zeroBefore.MatchString(text):
		s.r.fail(node, "%s%s is %s; write the number without the zero before it, or a string in quotes", s.prefix, key, text)
		return 0, false
	}
	return number, ok
}

// zeroBefore matches a number with a zero before its first digit.
var zeroBefore = regexp.MustCompile(`^[-+]?0[0-9_]`)

// value reads a value of any Kind.
func (s section) value(key string) Value {
	node := s.fields[key]
	if _, is := numberOf(node); is {
		number, ok := s.readNumber(key, node, "a number")
		if text := node.GetToken().Value; ok && inexact([]byte(text)) != "" {
			s.r.fail(node, "%s%s is %s, which is too large to be compared exactly; write it in quotes", s.prefix, key, text)
		}
		return NumberValue(number)
	}
	if text, ok := textOf(node); ok {
		return StringValue(text)
	}
	switch node.(type) {
	case *ast.BoolNode:
		return BoolValue(s.truth(key, false))
	case *ast.SequenceNode:
		return ListValue(s.texts(key))
	}
	s.wrong(key, "a number, a string, true or false, or a list of strings")
	return Value{}
}

// decimal is a number in the core schema of YAML 1.2. The parser leaves some of
// them strings, among them 3e9.
var decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// numberOf returns the number of a node; false if it is none.
func numberOf(node ast.Node) (float64, bool) {
	switch n := node.(type) {
	case *ast.FloatNode:
		return n.Value, true
	case *ast.IntegerNode:
		switch i := n.Value.(type) {
		case int64:
			return float64(i), true
		case uint64:
			return float64(i), true
		}
	case *ast.StringNode:
		if n.Token.Type == token.StringType && decimal.MatchString(n.Value) {
			number, err := strconv.ParseFloat(n.Value, 64)
			return number, err == nil
		}
	}
	return 0, false
}

// textOf returns the string of a node; false if it is none, or a number without quotes.
func textOf(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		_, isNumber := numberOf(n)
		return n.Value, !isNumber
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}

// kindsOfNode contains the names, for messages, of the kinds of YAML nodes in a hosts file.
var kindsOfNode = map[ast.NodeType]string{
	ast.NullType:     "nothing",
	ast.MappingType:  "a mapping",
	ast.SequenceType: "a list",
	ast.AnchorType:   "an anchor",
	ast.AliasType:    "an alias",
	ast.MergeKeyType: "a merge key",
	ast.TagType:      "a tag",
}

// describe describes the value at node, for a message that it is wrong.
func describe(node ast.Node) string {
	if name, ok := kindsOfNode[node.Type()]; ok {
		return name
	}
	return strconv.Quote(node.GetToken().Value)
}
