// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Placing is the part of placement that the API uses. The zero Placing means that Almanac places no
// instances.
type Placing struct {
	// States returns the states of the hosts; nil before they have been read.
	States func() *inventory.States
	// Pipeline chooses among the hosts; nil means that another scheduler does.
	Pipeline *scheduler.Pipeline
	// Flavors returns the cloud's flavors.
	Flavors func(ctx context.Context) ([]inventory.Flavor, error)
}

func (p Placing) states() *inventory.States {
	if p.States == nil {
		return nil
	}
	return p.States()
}

// evictor returns the evictor; nil means that evictions are off.
func (p Placing) evictor() *preemption.Evictor {
	if p.Pipeline == nil {
		return nil
	}
	return p.Pipeline.Evictor
}

// The reasons why evictions are off.
const (
	noPlacing = "Almanac places no instances here, so it evicts none: evictions require [scheduler] mode = replace"
	noRoom    = "preemptible instances are never evicted here ([preemptible] preempt_action = no)"
)

// stay returns the reason why no preemptible instance is ever evicted; "" if evictions are on.
func (p Placing) stay() string {
	switch {
	case p.Pipeline == nil:
		return noPlacing
	case p.Pipeline.Evictor == nil:
		return noRoom
	}
	return ""
}

// Preemptible serves the calls about preemptible instances.
type Preemptible struct {
	Placing Placing
	// Rule states which instances are preemptible.
	Rule inventory.PreemptibleRule
	// Snapshot returns the hosts.
	Snapshot func() *inventory.Snapshot
	Now      func() span.Instant
}

// list handles GET /v1/preemptible.
func (s Preemptible) list(c *serving.Call) (any, error) {
	q := c.Parameters("host", "project_id", "limit")
	host, project, limit := q.Text("host"), q.Text("project_id"), q.Number("limit", math.MaxInt32, 1, math.MaxInt32)
	if q.Err != nil {
		return nil, q.Err
	}
	now, list := s.Now(), []v1.PreemptibleInstance{}
	for name, i := range s.instances() {
		if i.Preemptible && (host == "" || strings.EqualFold(name, host)) && (project == "" || i.ProjectID == project) {
			list = append(list, s.presented(name, i, now))
		}
	}
	slices.SortFunc(list, inOrder)
	return v1.PreemptibleInstances{Instances: list[:min(limit, len(list))]}, nil
}

// inOrder compares instances: those that can be evicted come first, the cheapest first.
func inOrder(a, b v1.PreemptibleInstance) int {
	switch {
	case a.Evictable != b.Evictable && a.Evictable:
		return -1
	case a.Evictable != b.Evictable:
		return 1
	case a.Cost != nil && b.Cost != nil && *a.Cost != *b.Cost:
		return cmp.Compare(*a.Cost, *b.Cost)
	}
	return strings.Compare(a.ID, b.ID)
}

// instances iterates over the instances with the names of their hosts: from the states that placement
// uses, or else from the inventory.
func (s Preemptible) instances() iter.Seq2[string, *inventory.Instance] {
	return func(yield func(string, *inventory.Instance) bool) {
		each := func(host string, list []inventory.Instance) bool {
			for i := range list {
				if !yield(host, &list[i]) {
					return false
				}
			}
			return true
		}
		if states := s.Placing.states(); states != nil {
			for i := range states.Len() {
				if !each(states.Host(i).Name, states.InstancesOn(i)) {
					return
				}
			}
			return
		}
		for _, h := range s.Snapshot().Hosts() {
			if !each(h.Name, h.Instances) {
				return
			}
		}
	}
}

func (s Preemptible) presented(host string, i *inventory.Instance, now span.Instant) v1.PreemptibleInstance {
	out := v1.PreemptibleInstance{
		ID: i.ID, Name: i.Name, ProjectID: i.ProjectID, Host: host, Status: i.Status, Flavor: i.Flavor.Name,
		Holds: map[string]int64{}, Reason: cmp.Or(s.Placing.stay(), i.NotEvictable()),
	}
	maps.Copy(out.Holds, i.Holds)
	if i.Launched != 0 {
		out.LaunchedAt = new(i.Launched.Time())
	}
	if evictor := s.Placing.evictor(); evictor != nil {
		out.Cost, out.Unit = new(evictor.Cost.Of(i, now)), evictor.Cost.Unit()
	}
	out.Evictable = out.Reason == ""
	return out
}
