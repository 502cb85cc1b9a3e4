// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"errors"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/claiming/memory"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// four returns a Placement in which the provider "p" has 4 VCPU that are used in steps of 2.
func four() *memory.Placement {
	return &memory.Placement{
		Consumers: map[string]placing.Claim{}, Strays: map[string]bool{},
		Stock: func(provider, class string) (inventory.Stock, bool) {
			return inventory.Stock{Total: 4, Ratio: 1, Step: 2, Max: 4}, provider == "p" && class == "VCPU"
		},
	}
}

func claim(consumer string, generation *int64, provider, class string, amount int64) placing.Claim {
	return placing.Claim{Consumer: consumer, Generation: generation, Allocations: placing.Allocations{provider: {class: amount}}}
}

func TestAClaimIsGrantedOnlyOfWhatAProviderHas(t *testing.T) {
	for what, c := range map[string]struct {
		provider, class string
		amount          int64
		full            bool
	}{
		"what it has":                 {"p", "VCPU", 4, false},
		"more than it has":            {"p", "VCPU", 6, true},
		"an amount between its steps": {"p", "VCPU", 3, true},
		"another class":               {"p", "MEMORY_MB", 2, true},
		"another provider":            {"q", "VCPU", 2, true},
	} {
		p := four()
		err := p.Grant([]placing.Claim{claim("a", nil, c.provider, c.class, c.amount)})
		if _, full := errors.AsType[*placing.ErrNoCapacity](err); full != c.full || (err != nil) != c.full {
			t.Errorf("%s: %v", what, err)
		}
		if got := len(p.Consumers); got != map[bool]int{true: 0, false: 1}[c.full] {
			t.Errorf("%s: there are %d consumers", what, got)
		}
	}
}

func TestATransactionThatIsRefusedChangesNothing(t *testing.T) {
	p := four()
	if err := p.Grant([]placing.Claim{claim("a", nil, "p", "VCPU", 2)}); err != nil {
		t.Fatal(err)
	}
	has := p.Of("a")
	if err := p.Grant([]placing.Claim{claim("a", has.Generation, "p", "VCPU", 4), claim("b", nil, "p", "VCPU", 2)}); err == nil {
		t.Error("6 of 4 VCPU are granted")
	}
	if now := p.Of("a"); *now.Generation != *has.Generation || p.Used("p", "VCPU") != 2 {
		t.Errorf("after the refusal, the first consumer has %v, and %d VCPU are used", now, p.Used("p", "VCPU"))
	}
}

func TestAClaimStatesTheGenerationOfItsConsumer(t *testing.T) {
	p, none, three := four(), int64(0), int64(3)
	if err := p.Grant([]placing.Claim{claim("a", &three, "p", "VCPU", 2)}); !errors.Is(err, placing.ErrConsumerChanged) {
		t.Errorf("a generation of a consumer that does not exist: %v", err)
	}
	p.Strays["a"] = true
	if err := p.Grant([]placing.Claim{claim("a", nil, "p", "VCPU", 2)}); !errors.Is(err, placing.ErrConsumerChanged) {
		t.Errorf("no generation of a stray: %v", err)
	}
	if err := p.Grant([]placing.Claim{claim("a", &none, "p", "VCPU", 2)}); err != nil {
		t.Errorf("the generation of a stray: %v", err)
	}
	if err := p.Grant([]placing.Claim{claim("a", nil, "p", "VCPU", 2)}); !errors.Is(err, placing.ErrConsumerChanged) {
		t.Errorf("no generation of a consumer that exists: %v", err)
	}
}

func TestAReleaseSkipsConsumersThatHaveChanged(t *testing.T) {
	p := four()
	first := claim("a", nil, "p", "VCPU", 2)
	if err := p.Grant([]placing.Claim{first}); err != nil {
		t.Fatal(err)
	}
	second := claim("a", p.Of("a").Generation, "p", "VCPU", 4)
	second.Before = first.Allocations
	if err := p.Grant([]placing.Claim{second}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		claim placing.Claim
		left  int64
	}{{first, 4}, {second, 2}} {
		if err := p.Release([]placing.Claim{c.claim}); err != nil {
			t.Fatal(err)
		}
		if got := p.On("p")["a"]["VCPU"]; got != c.left {
			t.Errorf("it has %d VCPU after the release, want %d", got, c.left)
		}
	}
}
