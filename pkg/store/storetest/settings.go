package storetest

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
)

func testSettings(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("the last override of each host is what is set", func(t *testing.T) {
		s, want := offered[settings](t, open(t)), map[string]inventory.Override{}
		rapid.Check(t, func(rt *rapid.T) {
			host := rapid.SampledFrom([]string{"node-1", "node-2", "NODE-1", "node-1 "}).Draw(rt, "host")
			o := anyOverride().Draw(rt, "override")
			if err := s.SaveOverride(rt.Context(), host, o); err != nil {
				rt.Fatalf("save override: %v", err)
			}
			want[host] = o
			if o.Reservable == nil && len(o.Properties) == 0 {
				delete(want, host)
			}
			got, err := s.Overrides(rt.Context())
			if err != nil {
				rt.Fatalf("overrides: %v", err)
			}
			if d := diff(want, got); d != "" {
				rt.Errorf("overrides (-want +got):\n%s", d)
			}
		})
	})
	t.Run("a property is hidden until it is shown", func(t *testing.T) {
		s, want := offered[settings](t, open(t)), map[string]bool{}
		for _, step := range []struct {
			property string
			hidden   bool
		}{{"gpu", true}, {"GPU", true}, {"gpu", true}, {"rack", false}, {"gpu", false}, {"gpu", false}, {"rack", true}} {
			if err := s.SaveHidden(t.Context(), step.property, step.hidden); err != nil {
				t.Fatal(err)
			}
			want[step.property] = step.hidden
			maps.DeleteFunc(want, func(_ string, hidden bool) bool { return !hidden })
			got, err := s.Hidden(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if d := diff(want, got); d != "" {
				t.Errorf("after %+v (-want +got):\n%s", step, d)
			}
		}
	})
}

func anyOverride() *rapid.Generator[inventory.Override] {
	return rapid.Custom(func(t *rapid.T) inventory.Override {
		return inventory.Override{
			Properties: rapid.MapOfN(name(), anyValue(), 0, 4).Draw(t, "properties"),
			Reservable: rapid.Ptr(rapid.Bool(), true).Draw(t, "reservable"),
		}
	})
}

// anyValue draws a value of each kind, and nil, which removes a property.
func anyValue() *rapid.Generator[*inventory.Value] {
	return rapid.Ptr(rapid.OneOf(
		rapid.Map(rapid.Float64(), inventory.NumberValue),
		rapid.Map(rapid.String(), inventory.StringValue),
		rapid.Map(rapid.Bool(), inventory.BoolValue),
		rapid.Map(rapid.SliceOfN(rapid.String(), 0, 3), inventory.ListValue),
	), true)
}
