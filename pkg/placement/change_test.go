// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// ground is the lab's Placement with a provider of the test's own.
type ground struct {
	t        *testing.T
	client   *placement.Client
	rest     *labtest.REST
	provider string
	made     []string // traits and classes, by their paths
}

func newGround(t *testing.T) *ground {
	t.Helper()
	g := &ground{t: t, client: newClient(t, ""), rest: labtest.Keystone(t).REST(t, labtest.Almanac), provider: uuid.NewString()}
	g.rest.Must("POST", "placement", "/resource_providers", map[string]string{"name": "test-" + g.provider, "uuid": g.provider}, nil)
	t.Cleanup(func() {
		g.rest.Must("DELETE", "placement", "/resource_providers/"+g.provider, nil, nil)
		for _, path := range g.made {
			g.rest.Do("DELETE", "placement", path, nil, nil)
		}
	})
	return g
}

// newClient returns a client with a session of its own, to address, or to Placement if that is
// empty.
func newClient(t *testing.T, address string) *placement.Client {
	t.Helper()
	u := labtest.Almanac
	session, err := keystone.NewSession(keystone.Connection{
		AuthURL: labtest.OpenStack(t).AuthURL, Username: u.Name, Password: u.Password, ProjectName: u.Project,
	}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	client, err := placement.New(session, openstack.Options{
		Override: address, Wait: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// name returns a unique name of a trait or class; the test deletes it at its end.
func (g *ground) name(kind string) string {
	name := "CUSTOM_TEST_" + strings.ToUpper(strings.ReplaceAll(uuid.NewString(), "-", "_"))
	g.made = append(g.made, "/"+kind+"/"+name)
	return name
}

func (g *ground) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) traits() []string {
	g.t.Helper()
	traits, err := g.client.Traits(g.t.Context(), g.provider)
	g.must(err)
	return traits
}

func TestATraitIsMadeAndDeletedOnceAndForAll(t *testing.T) {
	g, ctx := newGround(t), t.Context()
	trait := g.name("traits")
	for range 2 {
		g.must(g.client.EnsureTrait(ctx, trait))
	}
	if names, err := g.client.TraitNames(ctx, trait); err != nil || !slices.Equal(names, []string{trait}) {
		t.Errorf("there are %v (%v), want %s", names, err, trait)
	}
	for range 2 {
		g.must(g.client.DeleteTrait(ctx, trait))
	}
	if names, err := g.client.TraitNames(ctx, trait); err != nil || len(names) > 0 {
		t.Errorf("there are %v (%v) after it was deleted", names, err)
	}
	if ids, err := g.client.ProvidersWith(ctx, trait); err != nil || len(ids) > 0 {
		t.Errorf("providers %v (%v) have a trait that does not exist", ids, err)
	}
}

func TestAResourceClassIsMadeAndDeletedOnceAndForAll(t *testing.T) {
	g, ctx := newGround(t), t.Context()
	class := g.name("resource_classes")
	for range 2 {
		g.must(g.client.EnsureClass(ctx, class))
	}
	if names, err := g.client.ClassNames(ctx, class); err != nil || !slices.Equal(names, []string{class}) {
		t.Errorf("there are %v (%v), want %s", names, err, class)
	}
	for range 2 {
		g.must(g.client.DeleteClass(ctx, class))
	}
	if names, err := g.client.ClassNames(ctx, class); err != nil || len(names) > 0 {
		t.Errorf("there are %v (%v) after it was deleted", names, err)
	}
}

func TestATraitThatAProviderHasIsNotDeleted(t *testing.T) {
	g, ctx := newGround(t), t.Context()
	trait := g.name("traits")
	g.must(g.client.EnsureTrait(ctx, trait))
	g.must(g.client.ChangeTraits(ctx, g.provider, []string{trait}, nil))
	err := g.client.DeleteTrait(ctx, trait)
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), trait) {
		t.Errorf("got %v, want a conflict that names the trait", err)
	}
	g.must(g.client.ChangeTraits(ctx, g.provider, nil, []string{trait}))
}

func TestTraitsOfOthersStayOnAProvider(t *testing.T) {
	g, ctx := newGround(t), t.Context()
	first, second := g.name("traits"), g.name("traits")
	g.must(g.client.EnsureTrait(ctx, first))
	g.must(g.client.EnsureTrait(ctx, second))
	g.must(g.client.ChangeTraits(ctx, g.provider, []string{"COMPUTE_NODE", first}, nil))
	for range 2 {
		g.must(g.client.ChangeTraits(ctx, g.provider, []string{second}, []string{first}))
	}
	if want := []string{second, "COMPUTE_NODE"}; !slices.Equal(g.traits(), sorted(want)) {
		t.Errorf("the provider has %v, want %v", g.traits(), want)
	}
	if ids, err := g.client.ProvidersWith(ctx, second); err != nil || !slices.Equal(ids, []string{g.provider}) {
		t.Errorf("providers %v (%v) have the trait, want %s", ids, err, g.provider)
	}
	before := g.client.Calls()
	g.must(g.client.ChangeTraits(ctx, g.provider, []string{second}, []string{first}))
	if calls := g.client.Calls() - before; calls != 1 {
		t.Errorf("%d calls although nothing changes, want 1", calls)
	}
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

func TestATraitThatDoesNotExistIsInvalid(t *testing.T) {
	g := newGround(t)
	if err := g.client.ChangeTraits(t.Context(), g.provider, []string{g.name("traits")}, nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v, want an invalid fault", err)
	}
}

func TestTwoClientsSetTraitsOfOneProviderAtOnceAndNoneIsLost(t *testing.T) {
	g, ctx := newGround(t), t.Context()
	clients := []*placement.Client{g.client, newClient(t, "")}
	const each = 4
	var names []string
	for range each * len(clients) {
		names = append(names, g.name("traits"))
		g.must(g.client.EnsureTrait(ctx, names[len(names)-1]))
	}
	for _, add := range []bool{true, false} {
		var all sync.WaitGroup
		for i, name := range names {
			all.Go(func() {
				change := []([]string){{name}, nil}
				if !add {
					slices.Reverse(change)
				}
				if err := clients[i%len(clients)].ChangeTraits(ctx, g.provider, change[0], change[1]); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if add && !slices.Equal(g.traits(), sorted(names)) || !add && len(g.traits()) > 0 {
			t.Errorf("the provider has %v", g.traits())
		}
	}
}

func TestAProviderJoinsAnAggregateOnce(t *testing.T) {
	g, ctx := newGround(t), t.Context()
	one, other := uuid.NewString(), uuid.NewString()
	for _, aggregate := range []string{one, other, one} {
		g.must(g.client.JoinAggregate(ctx, g.provider, aggregate))
	}
	for _, aggregate := range []string{one, other} {
		if ids, err := g.client.ProvidersIn(ctx, aggregate); err != nil || !slices.Equal(ids, []string{g.provider}) {
			t.Errorf("the aggregate has %v (%v), want %s", ids, err, g.provider)
		}
	}
}
