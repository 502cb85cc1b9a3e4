// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placement"
)

// units returns the child's inventory, or nil if there is no child.
func (g *ground) units(child string) map[string]int64 {
	g.t.Helper()
	id, err := g.client.ProviderNamed(g.t.Context(), child)
	g.must(err)
	if id == "" {
		return nil
	}
	inventories, err := g.client.Inventories(g.t.Context(), id)
	g.must(err)
	units := map[string]int64{}
	for class, i := range inventories {
		if i.Ratio != 1 || i.Reserved != 0 {
			g.t.Errorf("%s is %+v", class, i)
		}
		units[class] = i.Total
	}
	return units
}

func TestAChildProviderHasWhatItShallHaveAndStaysWithoutAny(t *testing.T) {
	g, ctx := newGround(t), t.Context()
	a, b, child := g.name("resource_classes"), g.name("resource_classes"), "test-child-"+g.provider
	g.must(g.client.EnsureClass(ctx, a))
	g.must(g.client.EnsureClass(ctx, b))
	for _, step := range []struct{ set, want map[string]int64 }{
		{map[string]int64{a: 0}, nil},
		{map[string]int64{a: 2}, map[string]int64{a: 2}},
		{map[string]int64{b: 3}, map[string]int64{a: 2, b: 3}},
		{map[string]int64{a: 5, b: 1}, map[string]int64{a: 5, b: 1}},
		{map[string]int64{a: 0}, map[string]int64{b: 1}},
		{map[string]int64{a: 0, b: 0}, map[string]int64{}},
	} {
		for range 2 {
			g.must(g.client.SetUnits(ctx, g.provider, child, step.set))
		}
		if got := g.units(child); fmt.Sprint(got) != fmt.Sprint(step.want) || got == nil != (step.want == nil) {
			t.Errorf("after %v the child has %v, want %v", step.set, got, step.want)
		}
	}
	g.dropChild(child)
}

func TestAClassThatDoesNotExistIsInvalidAndLeavesNoMoreThanAnEmptyChild(t *testing.T) {
	g, ctx := newGround(t), t.Context()
	class, child := g.name("resource_classes"), "test-child-"+g.provider
	if err := g.client.SetUnits(ctx, g.provider, child, map[string]int64{class: 1}); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v, want an invalid fault", err)
	}
	if got := g.units(child); len(got) > 0 {
		t.Errorf("the child has %v", got)
	}
	g.dropChild(child)
}

func TestUnitsThatAnInstanceHoldsAreNotTakenAway(t *testing.T) {
	g, ctx := newGround(t), t.Context()
	a, b, child, consumer := g.name("resource_classes"), g.name("resource_classes"), "test-child-"+g.provider, uuid.NewString()
	g.must(g.client.EnsureClass(ctx, a))
	g.must(g.client.EnsureClass(ctx, b))
	g.must(g.client.SetUnits(ctx, g.provider, child, map[string]int64{a: 2, b: 1}))
	id, err := g.client.ProviderNamed(ctx, child)
	g.must(err)
	hold := func(amount int64) int {
		return g.rest.Do("PUT", "placement", "/allocations/"+consumer, map[string]any{
			"allocations": map[string]any{id: map[string]any{"resources": map[string]int64{a: amount}}},
			"project_id":  "test", "user_id": "test", "consumer_generation": nil, "consumer_type": "INSTANCE",
		}, nil)
	}
	if status := hold(2); status != http.StatusConflict {
		t.Errorf("one consumer taking two units: status %d", status)
	}
	if status := hold(1); status != http.StatusNoContent {
		t.Fatalf("status %d", status)
	}
	for _, taken := range []map[string]int64{{a: 0}, {a: 0, b: 0}} {
		err := g.client.SetUnits(ctx, g.provider, child, taken)
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "instances still hold") {
			t.Errorf("taking %v away: %v, want a conflict", taken, err)
		}
	}
	if got := g.units(child); got[a] != 2 || got[b] != 1 {
		t.Errorf("the child has %v after it was refused", got)
	}
	g.rest.Must("DELETE", "placement", "/allocations/"+consumer, nil, nil)
	g.must(g.client.SetUnits(ctx, g.provider, child, map[string]int64{a: 0, b: 0}))
	g.dropChild(child)
}

// dropChild deletes the child, twice, and checks that it is gone.
func (g *ground) dropChild(child string) {
	g.t.Helper()
	ctx := g.t.Context()
	id, err := g.client.ProviderNamed(ctx, child)
	g.must(err)
	for range 2 {
		g.must(g.client.DeleteProvider(ctx, id))
	}
	if left, err := g.client.ProviderNamed(ctx, child); err != nil || left != "" {
		g.t.Errorf("the child still exists: %q, %v", left, err)
	}
}

func TestTwoClientsSetUnitsOfOneChildAtOnceAndNoneIsLost(t *testing.T) {
	g, ctx := newGround(t), t.Context()
	child, clients := "test-child-"+g.provider, []*placement.Client{g.client, newClient(t, "")}
	want, none := map[string]int64{}, map[string]int64{}
	var all sync.WaitGroup
	for i := range int64(6) {
		class := g.name("resource_classes")
		g.must(g.client.EnsureClass(ctx, class))
		want[class], none[class] = i+1, 0
	}
	i := 0
	for class, n := range want {
		client := clients[i%2]
		i++
		all.Go(func() {
			if err := client.SetUnits(ctx, g.provider, child, map[string]int64{class: n}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := g.units(child); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the child has %v, want %v", got, want)
	}
	g.must(g.client.SetUnits(ctx, g.provider, child, none))
	g.dropChild(child)
}
