// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
)

func testSettings(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("the last override of each host is stored", func(t *testing.T) {
		s, want := offered[settings](t, open(t)), map[string]inventory.Override{}
		rapid.Check(t, func(rt *rapid.T) {
			host := rapid.SampledFrom([]string{"node-1", "node-2", "NODE-1", "node-1 "}).Draw(rt, "host")
			o := anyOverride().Draw(rt, "override")
			err := s.ChangeOverride(rt.Context(), host, func(stored map[string]inventory.Override) (inventory.Override, error) {
				if d := diff(want, stored); d != "" {
					rt.Errorf("stored before (-want +got):\n%s", d)
				}
				return o, nil
			})
			if err != nil {
				rt.Fatalf("change override: %v", err)
			}
			refused := errors.New("refused")
			err = s.ChangeOverride(rt.Context(), host, func(map[string]inventory.Override) (inventory.Override, error) {
				return inventory.Override{Reservable: new(true)}, refused
			})
			if !errors.Is(err, refused) {
				rt.Errorf("a refused change returns %v", err)
			}
			want[host] = o
			if o.IsZero() {
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

// testSettingsInTurn makes workers, spread over the stores, count in one override. No count may be
// lost.
func testSettingsInTurn(t *testing.T, subjects ...Subject) {
	var wg sync.WaitGroup
	for worker := range workers {
		s := offered[settings](t, subjects[worker%len(subjects)])
		host := fmt.Sprint("node-", worker%3)
		wg.Go(func() {
			for range rounds {
				err := s.ChangeOverride(t.Context(), host, func(stored map[string]inventory.Override) (inventory.Override, error) {
					count := 0.0
					if value := stored[host].Properties["count"]; value != nil {
						count = value.Any().(float64)
					}
					next := inventory.NumberValue(count + 1)
					return inventory.Override{Properties: map[string]*inventory.Value{"count": &next}}, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all, err := offered[settings](t, subjects[0]).Overrides(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, o := range all {
		sum += o.Properties["count"].Any().(float64)
	}
	if sum != workers*rounds {
		t.Errorf("%d changes count %v", workers*rounds, sum)
	}
}

func anyOverride() *rapid.Generator[inventory.Override] {
	return rapid.Custom(func(t *rapid.T) inventory.Override {
		return inventory.Override{
			Properties: rapid.MapOfN(name(), anyValue(), 0, 4).Draw(t, "properties"),
			Reservable: rapid.Ptr(rapid.Bool(), true).Draw(t, "reservable"),
			Power:      rapid.Ptr(rapid.SampledFrom(inventory.Powers), true).Draw(t, "power"),

			Capabilities: rapid.Ptr(anyCapabilities(), true).Draw(t, "capabilities"),
		}
	})
}

func anyCapabilities() *rapid.Generator[inventory.Capabilities] {
	return rapid.Custom(func(t *rapid.T) inventory.Capabilities {
		return inventory.Capabilities{
			Texts:   rapid.MapOfN(name(), rapid.String(), 0, 4).Draw(t, "texts"),
			Created: anyInstant().Draw(t, "created"), Updated: anyInstant().Draw(t, "updated"),
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
