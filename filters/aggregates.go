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

// Aggregates refuses hosts outside the aggregates that the request requires, and hosts in an
// aggregate that it forbids, as Placement does for member_of.
type Aggregates struct{}

func (Aggregates) Name() string { return "AggregateFilter" }

func (Aggregates) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if r.Rebuild || len(r.MemberOf)+len(r.NotMemberOf) == 0 {
		return nil
	}
	return aggregates{s, r}
}

type aggregates struct {
	s *inventory.States
	r *placing.Request
}

func (a aggregates) Keep(hosts hostset.Set) {
	for _, any := range a.r.MemberOf {
		hosts.Keep(membersOf(a.s, any))
	}
	for _, uuid := range a.r.NotMemberOf {
		hosts.Subtract(a.s.Members(uuid))
	}
}

func (a aggregates) Why(i int) string {
	in := func(uuid string) bool { return a.s.Members(uuid).Has(i) }
	for _, any := range a.r.MemberOf {
		if !slices.ContainsFunc(any, in) {
			return "the host is not in the aggregate " + strings.Join(any, " or ")
		}
	}
	if n := slices.IndexFunc(a.r.NotMemberOf, in); n >= 0 {
		return fmt.Sprintf("the host is in the aggregate %s, which is forbidden", a.r.NotMemberOf[n])
	}
	return ""
}

// membersOf returns the hosts in any of the aggregates.
func membersOf(s *inventory.States, uuids []string) hostset.Set {
	members := hostset.New(s.Len())
	for _, uuid := range uuids {
		members.Unite(s.Members(uuid))
	}
	return members
}

// IsolatedAggregates keeps requests off the hosts of aggregates whose metadata trait:X=required
// names a trait that the request does not require (nova/scheduler/request_filter.py
// isolate_aggregates, with [scheduler] enable_isolated_aggregate_filtering).
type IsolatedAggregates struct {
	// Except is the prefix of traits that do not count: Almanac's own, which keep
	// nova-scheduler off the hosts that the filter Reservation closes here.
	Except string
}

func (IsolatedAggregates) Name() string { return "IsolatedAggregateFilter" }

// For implements Filter. It leaves out the hosts of aggregates that require a trait which the request
// lacks.
func (f IsolatedAggregates) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if r.Rebuild {
		return nil
	}
	var closed []*inventory.Aggregate
	list := s.Aggregates()
	for n := range list {
		if f.lacking(&list[n], r) != "" {
			closed = append(closed, &list[n])
		}
	}
	if closed == nil {
		return nil
	}
	open := s.All().Clone()
	for _, a := range closed {
		open.Subtract(s.Members(a.UUID))
	}
	return subset{open, func(i int) string {
		for _, a := range closed {
			if s.Members(a.UUID).Has(i) {
				return fmt.Sprintf("the aggregate %s is for requests with the trait %s", a.Name, f.lacking(a, r))
			}
		}
		return ""
	}}
}

// lacking returns the first trait, by name, that the aggregate requires and the request does
// not.
func (f IsolatedAggregates) lacking(a *inventory.Aggregate, r *placing.Request) (first string) {
	for key, value := range a.Metadata {
		trait, is := strings.CutPrefix(key, "trait:")
		if !is || value != "required" || f.Except != "" && strings.HasPrefix(trait, f.Except) || slices.Contains(r.Required, trait) {
			continue
		}
		if first == "" || trait < first {
			first = trait
		}
	}
	return first
}
