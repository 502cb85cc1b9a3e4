// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// DecisionLog returns the decisions about an instance or in a request, by its id, newest first.
type DecisionLog interface {
	Decisions(ctx context.Context, id string) ([]placing.Decision, error)
}

// Decisions serves the call about why an instance is where it is.
type Decisions struct{ Log DecisionLog }

// show handles GET /v1/decisions/{id}. If the caller may see none of the decisions, it
// answers as if there were none.
func (s Decisions) show(c *serving.Call) (any, error) {
	by, id := c.Asker(), c.PathID()
	found, err := s.Log.Decisions(c.Request.Context(), id)
	if err != nil {
		return nil, err
	}
	var answer v1.Decisions
	for _, d := range found {
		if sees(by, d.ProjectID) {
			answer.Decisions = append(answer.Decisions, decided(d, by))
		} else if evicted := evictedOf(d, by); len(evicted.Evicted) > 0 {
			answer.Decisions = append(answer.Decisions, evicted)
		}
	}
	if len(answer.Decisions) == 0 {
		return nil, fault.New(fault.NotFound, "no decision about %s is stored; use the id of an instance or of a request (req-…) that was placed recently", id)
	}
	return answer, nil
}

// sees reports whether by may see the decisions about instances of a project.
func sees(by *serving.Asker, project string) bool {
	return project == by.ProjectID || by.May("decisions:get_all_projects", project)
}

// evictedOf returns a decision that by may not see, reduced to by's evicted instances: it omits the
// instances that they made room for.
func evictedOf(d placing.Decision, by *serving.Asker) v1.Decision {
	out := v1.Decision{Instances: []string{}, HandledBy: d.HandledBy, At: d.At.Time(), Placements: []v1.Placement{}, Filters: []v1.FilterCount{}}
	for _, p := range d.Placements {
		out.Evicted = append(out.Evicted, victims(p, by)...)
	}
	for _, v := range out.Evicted {
		out.ProjectID, out.Instances = v.ProjectID, append(out.Instances, v.ID)
	}
	return out
}

// victims returns the victims of a placement that by may see.
func victims(p placing.Placement, by *serving.Asker) (list []v1.Victim) {
	for _, v := range p.Victims {
		if sees(by, v.ProjectID) {
			list = append(list, v1.Victim(v))
		}
	}
	return list
}

// decided returns a decision; it contains hosts only if by may see them.
func decided(d placing.Decision, by *serving.Asker) v1.Decision {
	withHosts := by.May("decisions:get_hosts", d.ProjectID)
	out := v1.Decision{
		RequestID: d.RequestID, ProjectID: d.ProjectID, Instances: append([]string{}, d.Instances...), ReservationID: d.Reservation,
		HandledBy: d.HandledBy, At: d.At.Time(), TookMS: float64(d.Took) / 1000, Reason: d.Reason, Considered: d.Considered,
		Placements: []v1.Placement{}, Filters: []v1.FilterCount{},
	}
	for _, p := range d.Placements {
		placed := v1.Placement{Instance: p.Instance, Victims: victims(p, by)}
		if withHosts {
			placed.Host, placed.Node, placed.Alternates = p.Host, p.Node, append([]string{}, p.Alternates...)
		}
		out.Placements = append(out.Placements, placed)
	}
	for _, f := range d.Filters {
		out.Filters = append(out.Filters, v1.FilterCount(f))
	}
	if !withHosts {
		return out
	}
	out.Refused, out.Ranked = []v1.RefusedHost{}, []v1.RankedHost{}
	for _, r := range d.Refused {
		out.Refused = append(out.Refused, v1.RefusedHost(r))
	}
	for _, r := range d.Ranked {
		if r.Parts == nil {
			r.Parts = map[string]float64{}
		}
		out.Ranked = append(out.Ranked, v1.RankedHost(r))
	}
	return out
}
