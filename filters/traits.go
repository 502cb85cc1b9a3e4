// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// disabledTrait is on disabled hosts and forbidden in all requests
// (nova/scheduler/request_filter.py compute_status_filter).
const disabledTrait = "COMPUTE_STATUS_DISABLED"

// Traits refuses hosts that lack a required trait or have a forbidden one, as Placement does.
type Traits struct{}

func (Traits) Name() string { return "TraitFilter" }

func (Traits) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if r.Rebuild {
		return nil
	}
	return traits{s, r}
}

type traits struct {
	s *inventory.States
	r *placing.Request
}

// Keep implements Test.
func (t traits) Keep(hosts hostset.Set) {
	hosts.Subtract(t.s.Trait(disabledTrait))
	for _, name := range t.r.Forbidden {
		hosts.Subtract(t.s.Trait(name))
	}
	for _, name := range t.r.Required {
		hosts.Keep(t.s.Trait(name))
	}
	for _, names := range t.r.AnyOf {
		any := hostset.New(t.s.Len())
		for _, name := range names {
			any.Unite(t.s.Trait(name))
		}
		hosts.Keep(any)
	}
}

// Why implements Test.
func (t traits) Why(i int) string {
	has := func(name string) bool { return t.s.Trait(name).Has(i) }
	lacks := func(name string) bool { return !has(name) }
	if has(disabledTrait) {
		return "the host is disabled: it has the trait " + disabledTrait
	}
	if n := slices.IndexFunc(t.r.Forbidden, has); n >= 0 {
		return fmt.Sprintf("the host has the trait %s, which is forbidden", t.r.Forbidden[n])
	}
	if n := slices.IndexFunc(t.r.Required, lacks); n >= 0 {
		return fmt.Sprintf("the host lacks the trait %s", t.r.Required[n])
	}
	for _, names := range t.r.AnyOf {
		if !slices.ContainsFunc(names, has) {
			return fmt.Sprintf("the host has none of the traits %s", strings.Join(names, ", "))
		}
	}
	return ""
}
