package filters

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Filter says which hosts may hold an instance, for all hosts at once.
//
// Each filter knows by itself in which requests it has a say, so that a pipeline asks
// all of them always, but a Once for the first instance only. The filters of Nova have
// none where hosts or nodes are forced, unless Nova asks for a check of such a host by its
// hint _nova_check_type (nova/scheduler/host_manager.py get_filtered_hosts); those that do
// Placement's work and the reservations' have. A rebuild stays where it is: of it only the
// forced and ignored hosts count, and the filters that Nova runs then (RUN_ON_REBUILD).
type Filter interface {
	// Name is Nova's or the papers', as in enabled_filters.
	Name() string
	// For prepares the filter for the first of the request's instances: those that are
	// placed already are in the states and no longer in the request, but for its group's
	// Hosts, to which each is added. It gives nil where every host passes.
	For(s *inventory.States, r *placing.Request, now span.Instant) Test
}

// Test is a filter that is prepared for one instance.
type Test interface {
	// Keep takes those out of hosts that may not hold the instance.
	Keep(hosts hostset.Set)
	// Why says in a sentence why host i was taken out.
	Why(i int) string
}

// Once is a filter that Nova asks for the first instance of a request only: what it looks
// at does not change within one (nova/filters.py run_filter_once_per_request).
type Once interface {
	Filter
	OncePerRequest()
}

// once makes a filter a Once.
type once struct{}

// OncePerRequest makes the filter a Once.
func (once) OncePerRequest() {}

// Partial is a filter that depends on facts about hosts that Nova's API does not tell.
// A host of which it cannot tell is refused; where a request meets such a host,
// another scheduler that knows the facts should decide.
type Partial interface {
	Filter
	// Beyond says in a sentence what of the request cannot be judged, on some host;
	// empty where all can.
	Beyond(s *inventory.States, r *placing.Request) string
}

// Beyond says in a sentence what of the request one of the filters cannot judge on
// some host; empty where they can judge all.
func Beyond(filters []Filter, s *inventory.States, r *placing.Request) string {
	for _, f := range filters {
		if p, ok := f.(Partial); ok {
			if what := p.Beyond(s, r); what != "" {
				return what
			}
		}
	}
	return ""
}

// checkHint is the hint by which Nova asks for the filters though a host is forced.
const checkHint = "_nova_check_type"

// unasked says that Nova's filters have no say in the request.
func unasked(r *placing.Request) bool { return r.Rebuild || forced(r) }

func forced(r *placing.Request) bool {
	return len(r.ForceHosts)+len(r.ForceNodes) > 0 && len(r.Hints[checkHint]) == 0
}
