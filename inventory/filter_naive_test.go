// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

func TestACompiledFilterAgreesWithTheRulesReadOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.SliceOfNDistinct(anyHost(), 1, 4, func(h inventory.Host) string { return h.Name }).Draw(t, "hosts")
		// One host has every property, so that no property is unknown.
		hosts = append(hosts, inventory.Host{Name: "full", Zone: "a", FlopsPerWatt: 1, Properties: properties{
			"num": inventory.NumberValue(1), "word": inventory.StringValue("a"),
			"flag": inventory.BoolValue(true), "set": inventory.ListValue([]string{"a"}),
		}})
		s, err := inventory.NewSnapshot(hosts, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		expr := anyExpression(t, 3)
		ahead := rapid.Bool().Draw(t, "ahead")
		raw, err := json.Marshal(expr)
		if err != nil {
			t.Fatal(err)
		}
		f, err := inventory.ParseFilter(raw, s, false)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		for _, h := range s.Hosts() {
			if got, want := f.Matches(h, ahead), holds(expr, h, ahead); got != want {
				t.Errorf("%s on %+v, ahead %v: got %v, want %v", raw, h, ahead, got, want)
			}
		}
	})
}

// The generators have few values, so that values often match.
var (
	anyNumber = rapid.SampledFrom([]float64{0, 1, 2, 2048})
	anyWord   = rapid.SampledFrom([]string{"a", "b", "c"})
	anyWords  = rapid.SliceOfN(anyWord, 0, 2)
)

func anyHost() *rapid.Generator[inventory.Host] {
	return rapid.Custom(func(t *rapid.T) inventory.Host {
		h := inventory.Host{
			Name:         anyWord.Draw(t, "name"),
			Zone:         rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone"),
			Traits:       anyWords.Draw(t, "traits"),
			FlopsPerWatt: anyNumber.Draw(t, "flops per watt"),
			Capacity:     resource.Vector{MemoryMB: 2048, DiskGB: 2},
			Used:         resource.Vector{MemoryMB: rapid.Int64Range(2046, 2048).Draw(t, "used"), DiskGB: rapid.Int64Range(0, 2).Draw(t, "used disk")},
			Properties:   properties{},
		}
		for _, p := range []struct {
			name  string
			value inventory.Value
		}{
			{"num", inventory.NumberValue(anyNumber.Draw(t, "num"))},
			{"word", inventory.StringValue(anyWord.Draw(t, "word"))},
			{"flag", inventory.BoolValue(rapid.Bool().Draw(t, "flag"))},
			{"set", inventory.ListValue(anyWords.Draw(t, "set"))},
		} {
			if rapid.Bool().Draw(t, "has "+p.name) {
				h.Properties[p.name] = p.value
			}
		}
		return h
	})
}

// anyExpression draws a valid expression.
func anyExpression(t *rapid.T, depth int) []any {
	if depth > 0 && rapid.Bool().Draw(t, "combine") {
		operator := rapid.SampledFrom([]string{"not", "and", "or"}).Draw(t, "combination")
		count := 1
		if operator != "not" {
			count = rapid.IntRange(1, 3).Draw(t, "count")
		}
		expr := []any{operator}
		for range count {
			expr = append(expr, anyExpression(t, depth-1))
		}
		return expr
	}
	kind := rapid.SampledFrom([]inventory.Kind{inventory.KindNumber, inventory.KindString, inventory.KindBool}).Draw(t, "kind")
	if rapid.Bool().Draw(t, "in") {
		expr := []any{"in", anyArgument(t, kind, false)}
		for range rapid.IntRange(1, 3).Draw(t, "candidates") {
			expr = append(expr, anyArgument(t, kind, true))
		}
		return expr
	}
	operators := []string{"=", "==", "!=", "<", ">", "<=", ">="}
	if kind == inventory.KindBool {
		operators = operators[:3]
	}
	operator := rapid.SampledFrom(operators).Draw(t, "comparison")
	return []any{operator, anyArgument(t, kind, false), anyArgument(t, kind, false)}
}

func anyArgument(t *rapid.T, kind inventory.Kind, lists bool) any {
	literal := rapid.Bool().Draw(t, "literal")
	switch {
	case kind == inventory.KindNumber && literal:
		return anyNumber.Draw(t, "number")
	case kind == inventory.KindNumber:
		return rapid.SampledFrom([]string{"$num", "$memory_mb", "$free_ram_mb", "$free_disk_mb", "$flops_per_watt"}).Draw(t, "number property")
	case kind == inventory.KindBool && literal:
		return rapid.Bool().Draw(t, "bool")
	case kind == inventory.KindBool:
		return "$flag"
	case literal:
		return anyWord.Draw(t, "string")
	case lists:
		return rapid.SampledFrom([]string{"$traits", "$set", "$word"}).Draw(t, "list property")
	default:
		return rapid.SampledFrom([]string{"$word", "$zone", "$name"}).Draw(t, "string property")
	}
}

// holds evaluates an expression as the documentation of filters defines it.
func holds(expr []any, h *inventory.Host, ahead bool) bool {
	inner := func(arg any) bool { return holds(arg.([]any), h, ahead) }
	switch expr[0] {
	case "not":
		return !inner(expr[1])
	case "and":
		return !slices.ContainsFunc(expr[1:], func(arg any) bool { return !inner(arg) })
	case "or":
		return slices.ContainsFunc(expr[1:], inner)
	}
	first := meaning(expr[1], h, ahead)
	if expr[0] == "in" {
		return slices.ContainsFunc(expr[2:], func(arg any) bool {
			candidate := meaning(arg, h, ahead)
			if list, ok := candidate.([]string); ok {
				word, isWord := first.(string)
				return isWord && slices.Contains(list, word)
			}
			return first != nil && first == candidate
		})
	}
	second := meaning(expr[2], h, ahead)
	equal, less := first == second, false
	if first == nil || second == nil {
		return expr[0] == "!="
	}
	if number, ok := first.(float64); ok {
		less = number < second.(float64)
	} else if word, ok := first.(string); ok {
		less = word < second.(string)
	}
	switch expr[0] {
	case "=", "==":
		return equal
	case "!=":
		return !equal
	case "<":
		return less
	case "<=":
		return less || equal
	case ">":
		return !less && !equal
	default:
		return !less
	}
}

// meaning returns an argument's value on h, or nil if h has none.
func meaning(arg any, h *inventory.Host, ahead bool) any {
	text, ok := arg.(string)
	if !ok || !strings.HasPrefix(text, "$") {
		return arg
	}
	free := h.Free()
	if ahead {
		free = h.Capacity
	}
	switch text {
	case "$name":
		return h.Name
	case "$memory_mb":
		return float64(h.Capacity.MemoryMB)
	case "$free_ram_mb":
		return float64(free.MemoryMB)
	case "$free_disk_mb":
		return float64(free.DiskGB) * 1024
	case "$traits":
		return h.Traits
	case "$zone":
		if h.Zone == "" {
			return nil
		}
		return h.Zone
	case "$flops_per_watt":
		if h.FlopsPerWatt == 0 {
			return nil
		}
		return h.FlopsPerWatt
	}
	return h.Properties[text[1:]].Any()
}
