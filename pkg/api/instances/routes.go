// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Routes returns the calls of the plugin.
func (s Scheduler) Routes() []serving.Route {
	return []serving.Route{
		serving.Post("/v1/scheduler/filter", serving.Rule("scheduler:filter"), serving.Ahead, serving.OnePage, serving.ByNobody, serving.NoParameters, serving.JSON(s.filter)),
		serving.Post("/v1/scheduler/weigh", serving.Rule("scheduler:weigh"), serving.Ahead, serving.OnePage, serving.ByNobody, serving.NoParameters, serving.JSON(s.weigh)),
	}
}

// Routes returns the call about decisions.
func (s Decisions) Routes() []serving.Route {
	return []serving.Route{
		serving.Get("/v1/decisions/:id", serving.Rule("decisions:get"), serving.InLine, serving.OneThing, serving.ByCaller, serving.NoParameters, serving.JSON(s.show)),
	}
}

// Routes returns the calls about preemptible instances.
func (s Preemptible) Routes() []serving.Route {
	return []serving.Route{
		serving.Get("/v1/preemptible", serving.Rule("preemptible:list"), serving.InTurn, serving.WholeList, serving.ByCaller, serving.Computed(s.list)),
		serving.Get("/v1/preemptible/cost", serving.Rule("preemptible:get_cost"), serving.InTurn, serving.OneThing, serving.ByCaller, serving.JSON(s.askCost)),
	}
}

// Routes returns the calls about live migrations.
func (s Packing) Routes() []serving.Route {
	there := serving.There(s.Admin != nil, fault.New(fault.Conflict,
		"no instances can be moved here: moves require [inventory] source = openstack or simulated, and the roles api and inventory in the same process"))
	return []serving.Route{
		serving.Post(packingPath, serving.Rule("packing:plan"), serving.InLine, serving.WholeList, serving.ByNobody, there, serving.NoParameters, serving.JSON(s.plan)),
		serving.Get(runsPath, serving.Rule("packing:list_runs"), serving.InLine, serving.OnePage, serving.ByCaller, there, serving.JSON(s.list)),
		serving.Post(runsPath, serving.Rule("packing:apply"), serving.InLine, serving.WholeList, serving.ByNobody, there, serving.NoParameters, serving.JSON(s.apply)),
		serving.Get(runsPath+"/:id", serving.Rule("packing:get_run"), serving.InLine, serving.WholeList, serving.ByCaller, there, serving.NoParameters, serving.JSON(s.show)),
		serving.Delete(runsPath+"/:id", serving.Rule("packing:stop"), serving.InLine, serving.Brief, serving.ByNobody, there, serving.NoParameters, serving.JSON(s.stop)),
	}
}

// Routes returns the calls about best-effort work.
func (s BestEffort) Routes() []serving.Route {
	there := serving.There(s.Queue != nil, noBestEffort())
	const path, one = bestEffortPath, bestEffortPath + "/:id"
	return []serving.Route{
		serving.Post(path, serving.Rule("besteffort:create"), serving.InLine, serving.OneThing, serving.ByNobody, there, serving.ForProject, serving.NoParameters, serving.JSON(s.submit)),
		serving.Get(path, serving.Rules("besteffort:list", "besteffort:list_all"), serving.InLine, serving.OnePage, serving.ByCaller, serving.JSON(s.list)),
		serving.Get(one, s.loading("besteffort:get"), serving.InLine, serving.OneThing, serving.ByCaller, serving.NoParameters, serving.JSON(s.show)),
		serving.Delete(one, s.loading("besteffort:delete"), serving.InLine, serving.Brief, serving.ByNobody, serving.NoParameters, serving.JSON(s.cancel)),
	}
}

// Routes returns the calls that exist only with a simulated cloud.
func (s Demo) Routes() []serving.Route {
	if s.Cloud == nil {
		return nil
	}
	const path = "/v1/demo/servers"
	return []serving.Route{
		serving.Get(path, serving.Rule("demo:list"), serving.InLine, serving.OnePage, serving.ByCaller, serving.NoParameters, serving.JSON(s.list)),
		serving.Post(path, serving.Rule("demo:create"), serving.InLine, serving.Brief, serving.ByNobody, serving.NoParameters, serving.JSON(s.create)),
		serving.Delete(path+"/:id", serving.Rule("demo:delete"), serving.InLine, serving.Brief, serving.ByNobody, serving.NoParameters, serving.JSON(s.remove)),
	}
}
