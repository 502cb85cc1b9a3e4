// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Routes returns the calls about hosts and their properties.
func (s API) Routes() []serving.Route {
	const hosts, properties = "/v1/hosts", "/v1/properties"
	return []serving.Route{
		serving.Get(hosts, serving.Rule("hosts:list"), serving.InTurn, serving.OnePage, serving.ByCaller, serving.Computed(s.list)),
		serving.Get(hosts+"/:name", serving.Rule("hosts:get"), serving.InLine, serving.OneThing, serving.ByCaller.Tagged(), serving.NoParameters, serving.JSON(s.show)),
		serving.Patch(hosts+"/:name", serving.Rule("hosts:update"), serving.InLine, serving.OneThing, serving.ByNobody.Tagged(), serving.NoParameters, serving.JSON(s.change)),
		serving.Get(properties, serving.Rule("properties:list"), serving.InTurn, serving.OnePage, serving.ByCaller, serving.NoParameters, serving.Computed(s.listProperties)),
		serving.Patch(properties+"/:name", serving.Rule("properties:update"), serving.InLine, serving.OneThing, serving.ByNobody, serving.NoParameters, serving.JSON(s.changeProperty)),
	}
}

// Routes returns the calls about hosts that are switched.
func (s Energy) Routes() []serving.Route {
	there := serving.There(s.Control != nil, fault.New(fault.NotFound, "this process has no energy controller"))
	const path, plan, hosts, one = "/v1/energy", "/v1/energy/plan", "/v1/energy/hosts", "/v1/energy/hosts/:name"
	return []serving.Route{
		serving.Get(path, serving.Rule("energy:get"), serving.InLine, serving.OneThing, serving.ByCaller.Tagged(), there, serving.NoParameters, serving.JSON(s.show)),
		serving.Patch(path, serving.Rule("energy:update"), serving.InLine, serving.OneThing, serving.ByNobody.Tagged(), there, serving.NoParameters, serving.JSON(s.change)),
		serving.Get(plan, serving.Rule("energy:get_plan"), serving.InLine, serving.OnePage, serving.ByCaller, there, serving.NoParameters, serving.JSON(s.showPlan)),
		serving.Post(plan, serving.Rule("energy:approve"), serving.InLine, serving.OnePage, serving.ByNobody, there, serving.NoParameters, serving.JSON(s.approvePlan)),
		serving.Get(hosts, serving.Rule("energy:list_hosts"), serving.InLine, serving.OnePage, serving.ByCaller, there, serving.JSON(s.listHosts)),
		serving.Get(one, serving.Rule("energy:get_host"), serving.InLine, serving.OneThing, serving.ByCaller, there, serving.NoParameters, serving.JSON(s.showHost)),
		serving.Post(one, serving.Rule("energy:order"), serving.InLine, serving.OneThing, serving.ByNobody, there, serving.JSON(s.order)),
		serving.Get("/v1/energy/audit", serving.Rule("energy:get_audit"), serving.InLine, serving.OnePage, serving.ByCaller, there, serving.JSON(s.listAudit)),
		serving.Get("/v1/energy/demand", serving.Rule("energy:get_audit"), serving.InLine, serving.OnePage, serving.ByCaller, there, serving.JSON(s.listDemand)),
	}
}

// Routes returns the call about images.
func (s Images) Routes() []serving.Route {
	return []serving.Route{
		serving.Get("/v1/images", serving.Rule("images:list"), serving.InTurn, serving.WholeList, serving.ByCaller, serving.Computed(s.list)),
	}
}
