// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
)

// comparable returns an answer with its unordered parts sorted and the JSON inside its strings
// decoded.
func comparable(t *testing.T, raw json.RawMessage) any {
	answer := decode(t, raw)
	objects(answer, func(o map[string]any) {
		if changes, ok := o["nova_object.changes"].([]any); ok {
			slices.SortFunc(changes, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
		if data := o["nova_object.data"].(map[string]any); o["nova_object.name"] == "Selection" {
			data["allocation_request"] = decode(t, []byte(data["allocation_request"].(string)))
		}
	})
	return answer
}

func TestEveryCapturedAnswerIsWrittenAsItWasRead(t *testing.T) {
	for _, name := range captured(t, "select_destinations-*reply") {
		m := capture(t, name)
		answer, err := object.ReadAnswer(m.Result)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(comparable(t, m.Result), comparable(t, encode(t, object.Answer(answer, true)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnAnswerIsReadWithItsAlternates(t *testing.T) {
	answer, err := object.ReadAnswer(capture(t, "select_destinations-multi-reply").Result)
	if err != nil {
		t.Fatal(err)
	}
	if len(answer) != 2 || len(answer[0]) != 3 || len(answer[1]) != 3 {
		t.Fatalf("got %+v", answer)
	}
	first := answer[0][0]
	if first.Host == "" || first.Node != first.Host || first.Cell == "" || first.Version != "1.36" || first.Zone != "nova" ||
		!strings.Contains(string(first.AllocationRequest), first.ComputeNode) {
		t.Errorf("got %+v", first)
	}
}

func TestARebuildClaimsNothing(t *testing.T) {
	answer, err := object.ReadAnswer(capture(t, "select_destinations-rebuild-reply").Result)
	if err != nil {
		t.Fatal(err)
	}
	if s := answer[0][0]; s.AllocationRequest != nil || s.Version != "" || s.Host != "cmp-007" {
		t.Errorf("got %+v", s)
	}
}

func TestOldCallersGetAMapForEachInstance(t *testing.T) {
	selections := [][]object.Selection{{{Host: "a", Node: "n"}, {Host: "b"}}, {{Host: "c", Node: "c"}}}
	raw := encode(t, object.Answer(selections, false))
	want := []any{
		map[string]any{"host": "a", "nodename": "n", "limits": map[string]any{}},
		map[string]any{"host": "c", "nodename": "c", "limits": map[string]any{}},
	}
	if diff := cmp.Diff(any(want), decode(t, raw)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, err := object.ReadAnswer(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]object.Selection{{{Host: "a", Node: "n"}}, {{Host: "c", Node: "c"}}}, got); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

func TestWhatIsNoAnswerIsRefused(t *testing.T) {
	selection := func(data map[string]any) []any { return []any{[]any{novaObject("Selection", "1.1", data)}} }
	for _, answer := range []any{
		"x", map[string]any{}, []any{7}, []any{nil}, []any{map[string]any{}}, []any{[]any{}}, []any{[]any{nil}}, []any{[]any{novaObject("Selection", "2.0", nil)}},
		selection(map[string]any{"service_host": 7}), selection(map[string]any{"allocation_request": "{"}),
	} {
		if got, err := object.ReadAnswer(encode(t, answer)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: got %v, %v", answer, got, err)
		}
	}
}
