// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/weighers"
)

// longestID is the largest number of characters of the id of an instance, which is stored.
const longestID = 255

// weigh handles POST /v1/scheduler/weigh.
func (s Scheduler) weigh(c *serving.Call) (any, error) {
	var question v1.WeighQuestion
	if _, err := c.Body(&question, serving.AnyBody); err != nil {
		return nil, err
	}
	hosts, err := named(question.Hosts)
	if err != nil {
		return nil, err
	}
	asked := question.Request
	if slices.Contains(asked.Instances, "") {
		return nil, fault.Field("request.instances", "an instance needs an id")
	}
	if slices.ContainsFunc(asked.Instances, func(id string) bool { return utf8.RuneCountInString(id) > longestID }) {
		return nil, fault.Field("request.instances", "an id has more than %d characters", longestID)
	}
	r := &placing.Request{
		ProjectID: asked.ProjectID, Hints: maps.Clone(asked.Hints), ExtraSpecs: asked.ExtraSpecs, Instances: asked.Instances,
	}
	r.Preemptible = asked.Preemptible || s.Admission.Rule.Marks(&inventory.Instance{
		ProjectID: r.ProjectID, Hints: r.Hints, Flavor: inventory.Flavor{ExtraSpecs: r.ExtraSpecs},
	})
	now := s.Now()
	held, refusal := s.admit(c.Request.Context(), r, now)
	answer := v1.WeighAnswer{Weights: weights(s.Weighers, hosts, r, now), Refusal: refusal}
	judge := func(string) placing.Verdict { return placing.Refuse(refusal) }
	if refusal == "" {
		judge = pinned(r.Host, s.Admission.Promises.Judge(*r, now))
	}
	answer.Hosts, answer.Refused = judged(question.Hosts, judge)
	if held != nil && refusal == "" && len(answer.Hosts) == 0 && len(question.Hosts) > 0 {
		answer.Refusal = fmt.Sprintf("none of the hosts of reservation %s has room for this; check what already runs on them", held.ID)
	}
	return answer, nil
}

// pinned returns a function that admits only the host that the queue planned for a best-effort
// instance; "" means any host.
func pinned(only string, judge func(host string) placing.Verdict) func(host string) placing.Verdict {
	if only == "" {
		return judge
	}
	return func(host string) placing.Verdict {
		if host != only {
			return placing.Refuse("this best-effort work is planned for another host")
		}
		return judge(host)
	}
}

// admit finds the reservation that the request names and records that its instances belong to it.
// refusal is a sentence for the tenant; "" if the request is admitted.
func (s Scheduler) admit(ctx context.Context, r *placing.Request, now span.Instant) (held *reservation.Reservation, refusal string) {
	entry, refusal := s.Admission.Resolve(ctx, r, now)
	if refusal != "" {
		return nil, refusal
	}
	if held = entry.Held; held != nil && held.Kind == reservation.Instances && !counted(held, r) {
		return nil, fmt.Sprintf("reservation %s is of kind instance; create its instances with its flavor: %s%s", held.ID, fence.FlavorPrefix, held.ID)
	}
	return held, s.Admission.Remember(ctx, r, entry, now)
}

// counted reports whether Placement counts the request's instances as those of the reservation.
// nova-scheduler requests from Placement only the flavor's resources, so the flavor must contain
// the reservation's resource class.
func counted(held *reservation.Reservation, r *placing.Request) bool {
	class := "resources:" + fence.OwnName(held.ID)
	return r.ExtraSpecs[class] == fence.Requires(held)[class]
}

// named returns states of hosts that contain nothing but their names.
func named(hosts []string) (*inventory.States, error) {
	if hosts == nil {
		return nil, fault.Field("hosts", "is required: the names of the hosts to weigh")
	}
	rows := make([]inventory.HostState, 0, len(hosts))
	for _, name := range slices.Compact(slices.Sorted(slices.Values(hosts))) {
		if name == "" {
			return nil, fault.Field("hosts", "a host needs a name")
		}
		rows = append(rows, inventory.HostState{Name: name})
	}
	s, err := inventory.NewStates(rows, nil)
	if err != nil {
		return nil, fault.Field("hosts", "%s", fault.Of(err).Message)
	}
	return s, nil
}

// weights returns the weights by the name of the host. The multipliers that aggregates set are
// applied by nova-scheduler.
func weights(by []weighers.Weighted, hosts *inventory.States, r *placing.Request, now span.Instant) map[string]float64 {
	places := make([]int, hosts.Len())
	for i := range places {
		places[i] = i
	}
	var ranking weighers.Ranking
	ranking.Rank(by, hosts, r, now, places)
	list := make(map[string]float64, len(places))
	for _, i := range places {
		list[hosts.Host(i).Name] = ranking.Weight(i)
	}
	return list
}
