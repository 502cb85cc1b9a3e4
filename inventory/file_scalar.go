package inventory

import (
	"regexp"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decimal is a number in the core schema of YAML 1.2. The parser leaves some of
// them strings, among them 3e9.
var decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

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

// kindsOfNode names the YAML nodes that a hosts file can hold.
var kindsOfNode = map[ast.NodeType]string{
	ast.NullType:     "nothing",
	ast.MappingType:  "a mapping",
	ast.SequenceType: "a list",
	ast.AnchorType:   "an anchor",
	ast.AliasType:    "an alias",
	ast.MergeKeyType: "a merge key",
	ast.TagType:      "a tag",
}

// describe names what stands at node, for a sentence that says it is wrong.
func describe(node ast.Node) string {
	if name, ok := kindsOfNode[node.Type()]; ok {
		return name
	}
	return strconv.Quote(node.GetToken().Value)
}
