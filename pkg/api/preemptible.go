package api

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Placing is by what instances are placed here. The zero Placing is that none are.
type Placing struct {
	// States gives those of the hosts, nil before they are read.
	States func() *inventory.States
	// Pipeline chooses among them; nil where another scheduler does.
	Pipeline *scheduler.Pipeline
	// Flavors gives those of the cloud.
	Flavors func(ctx context.Context) ([]inventory.Flavor, error)
}

func (p Placing) states() *inventory.States {
	if p.States == nil {
		return nil
	}
	return p.States()
}

// evictor says who makes room; nil where nobody does.
func (p Placing) evictor() *preemption.Evictor {
	if p.Pipeline == nil {
		return nil
	}
	return p.Pipeline.Evictor
}

// Why nobody makes room.
const (
	noPlacing = "Almanac places no instances here, so that none have to leave for others: that takes [scheduler] mode = replace"
	noRoom    = "preemptible instances do not make room here ([preemptible] make_room = no)"
)

// stay says why no preemptible instance ever leaves for another; empty where they do.
func (p Placing) stay() string {
	switch {
	case p.Pipeline == nil:
		return noPlacing
	case p.Pipeline.Evictor == nil:
		return noRoom
	}
	return ""
}

// listPreemptible handles GET /v1/preemptible.
func (s *server) listPreemptible(c *gin.Context) {
	q := readQuery(c, "host", "project_id", "limit")
	host, project, limit := q.text("host"), q.text("project_id"), q.number("limit", math.MaxInt32, 1, math.MaxInt32)
	if q.err != nil {
		s.fail(c, q.err)
		return
	}
	now, list := s.Now(), []v1.PreemptibleInstance{}
	for name, i := range s.guests() {
		if i.Preemptible && (host == "" || strings.EqualFold(name, host)) && (project == "" || i.ProjectID == project) {
			list = append(list, s.preemptible(name, i, now))
		}
	}
	slices.SortFunc(list, inOrder)
	c.PureJSON(http.StatusOK, v1.PreemptibleInstances{Instances: list[:min(limit, len(list))]})
}

// inOrder puts those first that can be evicted, of these the cheapest first.
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

// guests walks the instances with the names of their hosts: as they are placed by, or else
// as the inventory has them.
func (s *server) guests() iter.Seq2[string, *inventory.Instance] {
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
		for _, h := range s.Inventory.Snapshot().Hosts() {
			if !each(h.Name, h.Instances) {
				return
			}
		}
	}
}

func (s *server) preemptible(host string, i *inventory.Instance, now span.Instant) v1.PreemptibleInstance {
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
