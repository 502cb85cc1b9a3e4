// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Filter decides which hosts may run an instance, for all hosts at once.
//
// Each filter decides to which requests it applies. A pipeline therefore always runs all of them,
// except that a Once runs for the first instance only. Nova's filters do not apply if hosts or
// nodes are forced, unless Nova requests a check of such a host by its hint _nova_check_type
// (nova/scheduler/host_manager.py get_filtered_hosts); filters for Placement's rules and for
// reservations always apply. A rebuild stays on its host: only the forced and ignored hosts count,
// and the filters that Nova runs then (RUN_ON_REBUILD).
type Filter interface {
	// Name returns the name as in enabled_filters, Nova's or the papers'.
	Name() string
	// For prepares the filter for the first of the request's instances. Instances placed before it
	// are already in the states and no longer in the request, except that their hosts are in the
	// Hosts of its group. For returns nil if every host passes.
	For(s *inventory.States, r *placing.Request, now span.Instant) Test
}

// Test is a filter that is prepared for one instance.
type Test interface {
	// Keep removes the hosts that may not run the instance.
	Keep(hosts hostset.Set)
	// Why returns the reason why host i was removed, as a sentence.
	Why(i int) string
}

// Based is a Test whose verdicts depend on more than the host, the aggregates, the request and the
// instant.
type Based interface {
	Test
	// Basis identifies what else they depend on. With an equal Basis that is not nil, the verdict on a
	// host that has not changed is the same.
	Basis() any
}

// SameBasis reports whether two tests by one filter, for the same request at the same instant, return
// the same verdict on each host that has not changed in between. nil is the test that every host passes.
func SameBasis(a, b Test) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, is := a.(Based)
	y, too := b.(Based)
	if !is && !too {
		return true
	}
	return is && too && x.Basis() != nil && x.Basis() == y.Basis()
}

// Once is a filter that Nova runs only for the first instance of a request, because its input is
// the same for all (nova/filters.py run_filter_once_per_request).
type Once interface {
	Filter
	OncePerRequest()
}

// oncePerRequest implements Once for the filters that embed it.
type oncePerRequest struct{}

// OncePerRequest marks the filter as a Once.
func (oncePerRequest) OncePerRequest() {}

// Partial is a filter that needs facts about hosts that Nova's API may not return. It refuses
// hosts without these facts. For a request that such a host could serve, a scheduler that knows
// the facts should decide.
type Partial interface {
	Filter
	// Unsupported returns, as a sentence, what the filter cannot judge about the request on
	// some host; empty if it can judge all.
	Unsupported(s *inventory.States, r *placing.Request) string
}

// Unsupported returns, as a sentence, what one of the filters cannot judge about the request on
// some host; empty if they can judge all.
func Unsupported(filters []Filter, s *inventory.States, r *placing.Request) string {
	for _, f := range filters {
		if p, ok := f.(Partial); ok {
			if what := p.Unsupported(s, r); what != "" {
				return what
			}
		}
	}
	return ""
}

// checkHint is the hint with which Nova requests the filters although a host is forced.
const checkHint = "_nova_check_type"

// skipsNovaFilters reports whether Nova's filters do not apply to the request.
func skipsNovaFilters(r *placing.Request) bool { return r.Rebuild || forced(r) }

func forced(r *placing.Request) bool {
	return len(r.ForceHosts)+len(r.ForceNodes) > 0 && len(r.Hints[checkHint]) == 0
}
