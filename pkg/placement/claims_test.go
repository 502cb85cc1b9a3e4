// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

const post = "POST /allocations"

// newRoom returns a ground whose provider has this many VCPU.
func newRoom(t *testing.T, vcpus int) *ground {
	t.Helper()
	g := newGround(t)
	g.stock(g.provider, vcpus)
	return g
}

func (g *ground) stock(provider string, vcpus int) {
	g.t.Helper()
	g.rest.Must("PUT", "placement", "/resource_providers/"+provider+"/inventories", map[string]any{
		"resource_provider_generation": 0, "inventories": map[string]any{"VCPU": map[string]int{"total": vcpus, "max_unit": max(1, vcpus/2)}},
	}, nil)
}

// claim returns a claim of a new consumer for this many VCPU of the ground's provider.
func (g *ground) claim(vcpus int64) placing.Claim {
	return g.claimOf(uuid.NewString(), nil, g.on(g.provider, vcpus))
}

func (g *ground) on(provider string, vcpus int64) placing.Allocations {
	return placing.Allocations{provider: {"VCPU": vcpus}}
}

// claimOf returns a claim whose allocation the test deletes at its end.
func (g *ground) claimOf(consumer string, generation *int64, a placing.Allocations) placing.Claim {
	g.t.Cleanup(func() { g.rest.Do("DELETE", "placement", "/allocations/"+consumer, nil, nil) })
	return placing.Claim{Consumer: consumer, ProjectID: "test-project", UserID: "test-user", Generation: generation, Allocations: a}
}

// has returns what a consumer has.
func (g *ground) has(consumer string) placing.Claim {
	g.t.Helper()
	has, err := g.client.AllocationsOf(g.t.Context(), consumer)
	g.must(err)
	return has
}

func (g *ground) used() int64 {
	g.t.Helper()
	used, err := g.client.Usages(g.t.Context(), g.provider)
	g.must(err)
	return used["VCPU"]
}

func TestClaimsAreAllGrantedOrNone(t *testing.T) {
	g, ctx := newRoom(t, 4), t.Context()
	one, two, third := g.claim(2), g.claim(1), g.claim(2)
	err := g.client.Claim(ctx, []placing.Claim{one, two, third})
	var full *placing.ErrNoCapacity
	if !errors.As(err, &full) || full.Provider != g.provider || !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want no room on %s, as a conflict", err, g.provider)
	}
	for _, claim := range []placing.Claim{one, two, third} {
		if has := g.has(claim.Consumer); has.Generation != nil || len(has.Allocations) > 0 {
			t.Errorf("%s has %v although not all had room", claim.Consumer, has)
		}
	}
	g.must(g.client.Claim(ctx, []placing.Claim{one, two}))
	for _, claim := range []placing.Claim{one, two} {
		generation := int64(1)
		want := claim
		want.Generation = &generation
		if diff := cmp.Diff(want, g.has(claim.Consumer)); diff != "" {
			t.Errorf("what a consumer has (-want +got):\n%s", diff)
		}
	}
}

// Nova's consumers have no type, and Nova's own claims at 1.36 do not change it.
func TestClaimsAreWrittenInNovasMicroversion(t *testing.T) {
	g := newRoom(t, 4)
	claim := g.claim(1)
	g.must(g.client.Claim(t.Context(), []placing.Claim{claim}))
	var body struct {
		Type string `json:"consumer_type"`
	}
	g.rest.Must("GET", "placement", "/allocations/"+claim.Consumer, nil, &body)
	if body.Type != "unknown" {
		t.Errorf("the consumer's type is %q, want unknown", body.Type)
	}
}

func TestWhyAClaimIsRefusedIsTold(t *testing.T) {
	g := newRoom(t, 4)
	old := g.claim(1)
	g.must(g.client.Claim(t.Context(), []placing.Claim{old}))
	absent, foreign := uuid.NewString(), g.claim(1)
	foreign.Allocations = placing.Allocations{g.provider: {"CUSTOM_ALMANAC_NONE_SUCH": 1}}
	without := g.claim(1)
	without.Allocations = placing.Allocations{g.provider: {"MEMORY_MB": 1}}
	for _, c := range []struct {
		name  string
		claim placing.Claim
		want  string // provider without room, or "taken" or "invalid"
	}{
		{"more than there is", g.claim(5), g.provider},
		{"more than max_unit", g.claim(3), g.provider},
		{"a class that the provider has not", without, g.provider},
		{"a class that does not exist", foreign, ""},
		{"a provider that does not exist", g.claimOf(uuid.NewString(), nil, g.on(absent, 1)), absent},
		{"a consumer that has allocations", old, "taken"},
		{"a consumer that has none any more", g.claimOf(uuid.NewString(), new(int64), g.on(g.provider, 1)), "taken"},
		{"nonsense", g.claimOf(uuid.NewString(), nil, g.on(g.provider, 0)), "invalid"},
	} {
		err := g.client.Claim(t.Context(), []placing.Claim{c.claim})
		var full *placing.ErrNoCapacity
		switch {
		case c.want == "taken":
			if !errors.Is(err, placing.ErrConsumerChanged) || !fault.Is(err, fault.Conflict) {
				t.Errorf("%s: got %v, want a changed consumer", c.name, err)
			}
		case c.want == "invalid":
			if errors.As(err, &full) || !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: got %v, want an invalid fault", c.name, err)
			}
		case !errors.As(err, &full) || full.Provider != c.want:
			t.Errorf("%s: got %v, want no room on %q", c.name, err, c.want)
		}
	}
}

func TestOfManyThatClaimTheLastRoomAsManyHaveItAsThereIsRoom(t *testing.T) {
	g := newRoom(t, 8)
	clients := []*placement.Client{g.client, newClient(t, "")}
	var granted atomic.Int64
	var all sync.WaitGroup
	for i := range 16 {
		claim := g.claim(1)
		all.Go(func() {
			err := clients[i%2].Claim(t.Context(), []placing.Claim{claim})
			if full := (*placing.ErrNoCapacity)(nil); err == nil {
				granted.Add(1)
			} else if !errors.As(err, &full) {
				t.Errorf("got %v, want no room", err)
			}
		})
	}
	all.Wait()
	if used := g.used(); granted.Load() != used || used != 8 {
		t.Errorf("%d of 16 were granted and %d are used, want 8", granted.Load(), used)
	}
}

func TestAClaimThatOthersOvertakeIsMadeAnewSomeTimes(t *testing.T) {
	g := newRoom(t, 4)
	client, m := behind(t)
	m.MeddleTimes(2, post, overtaken)
	g.must(client.Claim(t.Context(), []placing.Claim{g.claim(1)}))
	if m.Count(post) != 3 || g.used() != 1 {
		t.Errorf("after %d attempts %d is used, want 3 and 1", m.Count(post), g.used())
	}
	m.Meddle(post, overtaken)
	if err := client.Claim(t.Context(), []placing.Claim{g.claim(1)}); !errors.Is(err, placing.ErrConcurrentUpdate) || m.Count(post) != 13 {
		t.Errorf("got %v after %d attempts, want a concurrent update after 10 more", err, m.Count(post))
	}
}

func TestAClaimWithoutAnAnswerIsNotMadeAgain(t *testing.T) {
	g := newRoom(t, 4)
	for _, wrong := range []labtest.Wrong{labtest.Status(http.StatusServiceUnavailable), labtest.Cut, labtest.Lose} {
		client, m := behind(t)
		m.Meddle(post, wrong)
		err := client.Claim(t.Context(), []placing.Claim{g.claim(1)})
		if !fault.Is(err, fault.Unavailable) || m.Count(post) != 1 {
			t.Errorf("got %v after %d attempts, want an unavailable fault after 1", err, m.Count(post))
		}
	}
}

func TestAnEvacuatedInstanceHasBothHosts(t *testing.T) {
	g, ctx := newRoom(t, 4), t.Context()
	target := newRoom(t, 4)
	claim := g.claim(2)
	g.must(g.client.Claim(ctx, []placing.Claim{claim}))
	has := g.has(claim.Consumer)

	both := g.claimOf(claim.Consumer, has.Generation, has.Allocations.WithSource(target.on(target.provider, 2)))
	both.Before = has.Allocations
	g.must(g.client.Claim(ctx, []placing.Claim{both}))
	want := placing.Allocations{g.provider: {"VCPU": 2}, target.provider: {"VCPU": 2}}
	if diff := cmp.Diff(want, g.has(claim.Consumer).Allocations); diff != "" {
		t.Errorf("what it has while it moves (-want +got):\n%s", diff)
	}
	g.must(g.client.Release(ctx, []placing.Claim{both}))
	if diff := cmp.Diff(claim.Allocations, g.has(claim.Consumer).Allocations); diff != "" {
		t.Errorf("what it has after the release (-want +got):\n%s", diff)
	}
}

func TestAReleaseTakesOnlyWhatIsStillTheClaims(t *testing.T) {
	g, ctx := newRoom(t, 8), t.Context()
	ours, gone, changed := g.claim(1), g.claim(1), g.claim(1)
	g.must(g.client.Claim(ctx, []placing.Claim{ours, gone, changed}))
	g.rest.Must("DELETE", "placement", "/allocations/"+gone.Consumer, nil, nil)
	resized := g.claimOf(changed.Consumer, g.has(changed.Consumer).Generation, g.on(g.provider, 3))
	g.must(g.client.Claim(ctx, []placing.Claim{resized}))

	for range 2 {
		g.must(g.client.Release(ctx, []placing.Claim{ours, gone, changed}))
	}
	if has := g.has(changed.Consumer).Allocations; !has.Equal(resized.Allocations) || g.used() != 3 {
		t.Errorf("the changed one has %v, and %d is used, want %v and 3", has, g.used(), resized.Allocations)
	}
}

// A released consumer can claim again, as when an instance is unshelved again.
func TestAReleasedConsumerIsNewAgain(t *testing.T) {
	g, ctx := newRoom(t, 4), t.Context()
	claim := g.claim(1)
	for range 2 {
		g.must(g.client.Claim(ctx, []placing.Claim{claim}))
		g.must(g.client.Release(ctx, []placing.Claim{claim}))
	}
	if has := g.has(claim.Consumer); has.Generation != nil || g.used() != 0 {
		t.Errorf("it has %v and %d is used after it was released", has, g.used())
	}
}

func TestAReleaseThatAChangeComesBeforeLooksAgain(t *testing.T) {
	g, ctx := newRoom(t, 4), t.Context()
	claim := g.claim(1)
	g.must(g.client.Claim(ctx, []placing.Claim{claim}))
	client, m := behind(t)
	m.MeddleTimes(1, post, refusal(http.StatusConflict,
		`{"errors": [{"detail": "consumer generation conflict - expected 2 but got 1", "code": "placement.concurrent_update"}]}`))
	g.must(client.Release(ctx, []placing.Claim{claim}))
	if g.used() != 0 || m.Count(post) != 2 {
		t.Errorf("%d is used after %d attempts, want 0 and 2", g.used(), m.Count(post))
	}
}

func TestAllocationsThatMakeNoSenseAreNotTaken(t *testing.T) {
	provider := uuid.NewString()
	full := `"project_id": "p", "user_id": "u", "consumer_generation": 1`
	for _, document := range []string{
		`{}`, `null`, `<html>`, `{"allocations": null}`, `{"allocations": []}`,
		`{"allocations": {"` + provider + `": {"resources": {"VCPU": 1}}}}`,
		`{"allocations": {"` + provider + `": {"resources": {}}}, ` + full + `}`,
		`{"allocations": {"` + provider + `": {"resources": {"VCPU": "1"}}}, ` + full + `}`,
	} {
		_, err := reader(t, document).AllocationsOf(t.Context(), uuid.NewString())
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "is invalid") {
			t.Errorf("%s: got %v, want an error about an invalid answer", document, err)
		}
	}
}
