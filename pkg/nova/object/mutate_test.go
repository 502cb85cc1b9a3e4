// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// mutated returns raw with a few changes: to bytes, values, nesting, or its end.
func mutated(t testing.TB, random *rand.Rand, raw []byte) []byte {
	if random.IntN(2) == 0 {
		value := decode(t, raw)
		for range 1 + random.IntN(3) {
			value = replaced(random, value)
		}
		return encode(t, value)
	}
	raw = append([]byte(nil), raw...)
	for range 1 + random.IntN(8) {
		i := random.IntN(len(raw))
		switch c := raw[i]; {
		case random.IntN(20) == 0:
			raw[i] = byte(random.Uint32())
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			raw[i] ^= byte(1 << random.IntN(3)) // usually still JSON
		}
	}
	if random.IntN(10) == 0 {
		raw = raw[:random.IntN(len(raw))]
	}
	return raw
}

// replaced returns value with a part of it replaced by a value of another kind.
func replaced(random *rand.Rand, value any) any {
	if random.IntN(12) > 0 {
		switch value := value.(type) {
		case map[string]any:
			if inner, ok := value["nova_object.data"]; ok && random.IntN(12) > 0 {
				value["nova_object.data"] = replaced(random, inner)
				return value
			}
			if len(value) > 0 {
				key := slices.Sorted(maps.Keys(value))[random.IntN(len(value))]
				value[key] = replaced(random, value[key])
				return value
			}
		case []any:
			if len(value) > 0 {
				i := random.IntN(len(value))
				value[i] = replaced(random, value[i])
				return value
			}
		}
	}
	switch random.IntN(11) {
	case 0:
		return nil
	case 1:
		return []any{value, value}
	case 2:
		return map[string]any{"nova_object.data": value}
	case 3:
		return json.Number("1e400")
	case 4:
		return json.Number("-9223372036854775809")
	case 5:
		return "\ufffd\x00'; --"
	case 6:
		return random.IntN(2) == 0
	case 7:
		for range random.IntN(300) {
			value = []any{value}
		}
		return value
	case 8:
		return map[string]any{"": value, "hw:x": "", "resources:VCPU": "99999999999999999999", "trait:": "required"}
	case 9:
		return map[string]any{}
	}
	return random.Int64() - random.Int64()
}

// withstand reads arbitrary bytes: they are either refused as the sender's fault, or a sound
// request that can be narrowed and read again.
func withstand(t testing.TB, raw []byte) (sound bool) {
	t.Helper()
	spec, err := object.ReadRequestSpec(raw)
	if err != nil {
		blame(t, raw, err)
		return false
	}
	r, _, err := spec.Request(object.Options{Instances: []string{"i"}})
	if err != nil {
		blame(t, raw, err)
		return false
	}
	for class, amount := range r.Resources {
		if amount <= 0 || amount > 1<<31-1 {
			t.Errorf("%d of %s from %q", amount, class, raw)
		}
	}
	narrowed, err := spec.Narrow(narrowing)
	if err != nil {
		blame(t, raw, err)
		return true
	}
	again, err := object.ReadRequestSpec(narrowed)
	if err != nil {
		t.Errorf("the narrowed spec cannot be read: %v, from %q", err, raw)
		return true
	}
	n, _, err := again.Request(object.Options{Instances: []string{"i"}})
	if err != nil || !holds(n) {
		t.Errorf("the narrowed spec asks for %+v (%v), from %q", n, err, raw)
	}
	return true
}

// holds reports whether a narrowed request asks for everything in narrowing.
func holds(r placing.Request) bool {
	return len(r.MemberOf) >= 2 && slices.Contains(r.NotMemberOf, "agg-x") && slices.Contains(r.NotMemberOf, "agg-y") &&
		slices.Contains(r.IgnoreHosts, "cmp-009") && slices.Contains(r.Required, "CUSTOM_ALMANAC")
}

func blame(t testing.TB, raw []byte, err error) {
	t.Helper()
	if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Conflict) {
		t.Errorf("%v, from %q", err, raw)
	}
}

func TestTenThousandMutatedSpecsAreReadOrRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var specs []json.RawMessage
	for _, name := range captured(t, "select_destinations-*request") {
		specs = append(specs, specOf(t, name[len("select_destinations-"):len(name)-len("request")]))
	}
	const count = 10_000
	sound, slowest := 0, time.Duration(0)
	for i := range count {
		raw := mutated(t, random, specs[i%len(specs)])
		begin := time.Now()
		if withstand(t, raw) {
			sound++
		}
		slowest = max(slowest, time.Since(begin))
	}
	t.Logf("%d of %d are sound, the slowest took %s", sound, count, slowest)
	if sound < count/10 || sound > count*9/10 {
		t.Errorf("%d of %d are sound: the mutations are too rough or too gentle", sound, count)
	}
	if slowest > time.Minute {
		t.Errorf("one took %s", slowest)
	}
}

func TestMutatedAnswersAreReadOrRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		raw := mutated(t, random, capture(t, "select_destinations-multi-reply").Result)
		if _, err := object.ReadAnswer(raw); err != nil {
			blame(t, raw, err)
		}
	}
}

func FuzzRequestSpec(f *testing.F) {
	for _, name := range captured(f, "select_destinations-*request") {
		f.Add([]byte(specOf(f, name[len("select_destinations-"):len(name)-len("request")])))
	}
	f.Fuzz(func(t *testing.T, raw []byte) { withstand(t, raw) })
}

func FuzzHints(f *testing.F) {
	for _, hints := range []string{
		`{}`, `null`, `{"reservation":["0f6c7a2e-5a52-4c64-9f0c-2d5a9a1b7c33"]}`, `{"_nova_check_type":["rebuild"]}`,
		`{"only":["cmp-002"],"reservation":["aaaa","bbbb"]}`, `{"query":["[\">=\",\"$free_ram_mb\",1024]"]}`, `{"a":"b","c":[1,true,null]}`,
	} {
		f.Add([]byte(hints))
	}
	spec := decode(f, specOf(f, "")).(map[string]any)
	f.Fuzz(func(t *testing.T, hints []byte) {
		if !json.Valid(hints) {
			return
		}
		data(t, spec, "")["scheduler_hints"] = json.RawMessage(hints)
		raw := encode(t, spec)
		if !withstand(t, raw) {
			return
		}
		r, _ := request(t, raw, object.Options{Instances: []string{"i"}})
		if rebuild := len(r.Hints["_nova_check_type"]) == 1 && r.Hints["_nova_check_type"][0] == "rebuild" && len(r.ForceHosts) > 0; rebuild != r.Rebuild {
			t.Errorf("rebuild %t with the hints %q", r.Rebuild, hints)
		}
	})
}

func BenchmarkRequest(b *testing.B) {
	raw := specOf(b, "cold-migrate-")
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		spec, err := object.ReadRequestSpec(raw)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := spec.Request(object.Options{ID: "req-1", Instances: []string{"i"}}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNarrow(b *testing.B) {
	spec := read(b, specOf(b, "cold-migrate-"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := spec.Narrow(narrowing); err != nil {
			b.Fatal(err)
		}
	}
}
