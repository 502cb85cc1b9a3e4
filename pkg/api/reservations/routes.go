// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
)

// Routes returns the calls about reservations.
func (s API) Routes() []serving.Route {
	return slices.Concat(s.routes(), groups{s}.routes(), series{s}.routes())
}

// routes returns the calls about reservations, and about when there is room for one.
func (s API) routes() []serving.Route {
	const path, one = "/v1/reservations", "/v1/reservations/:id"
	return []serving.Route{
		serving.Post(path, serving.Rule("reservations:create"), serving.InTurn, serving.OneThing, serving.ByNobody.Tagged(), serving.ForProject, serving.JSON(s.create)),
		serving.Get(path, serving.Rules("reservations:list", "reservations:list_all"), serving.InTurn, serving.OnePage, serving.ByCaller, serving.JSON(s.list)),
		serving.Get(one, s.loading(showRule), serving.InLine, serving.OneThing, serving.ByCaller.Tagged(), serving.NoParameters, serving.JSON(s.show)),
		serving.Patch(one, s.loading("reservations:update"), serving.InTurn, serving.OneThing, serving.ByNobody.Tagged(), serving.JSON(s.change)),
		serving.Delete(one, s.loading("reservations:delete"), serving.InLine, serving.Brief, serving.ByNobody.Tagged(), serving.JSON(s.cancel)),
		serving.Get("/v1/availability", serving.Rule("availability:get"), serving.InTurn, serving.OneThing, serving.ByCaller, serving.JSON(s.availability)),
		serving.Post("/v1/offers", serving.Rule("offers:create"), serving.InTurn, serving.OneThing, serving.ByNobody, serving.NoParameters, serving.JSON(s.offers)),
		serving.Get("/v1/limits", serving.Rule("limits:get"), serving.InTurn, serving.Brief, serving.ByCaller, serving.Computed(s.limits)),
	}
}

// routes returns the calls about groups.
func (s groups) routes() []serving.Route {
	const path, one = "/v1/groups", "/v1/groups/:id"
	return []serving.Route{
		serving.Post(path, serving.Rule("reservations:create"), serving.InTurn, serving.OneThing, serving.ByNobody.Tagged(), serving.ForProject, serving.JSON(s.create)),
		serving.Get(path, serving.Rules("reservations:list", "reservations:list_all"), serving.InTurn, serving.OnePage, serving.ByCaller, serving.JSON(s.list)),
		serving.Get(one, s.groupLoading(showRule), serving.InLine, serving.OneThing, serving.ByCaller.Tagged(), serving.NoParameters, serving.JSON(s.show)),
		serving.Patch(one, s.groupLoading("reservations:update"), serving.InTurn, serving.OneThing, serving.ByNobody.Tagged(), serving.JSON(s.change)),
		serving.Delete(one, s.groupLoading("reservations:delete"), serving.InLine, serving.Brief, serving.ByNobody.Tagged(), serving.JSON(s.cancel)),
	}
}

// routes returns the calls about series.
func (s series) routes() []serving.Route {
	const path, one = "/v1/series", "/v1/series/:id"
	return []serving.Route{
		serving.Post(path, serving.Rule("reservations:create"), serving.InTurn, serving.OnePage, serving.ByNobody.Tagged(), serving.ForProject, serving.JSON(s.create)),
		serving.Get(path, serving.Rules("reservations:list", "reservations:list_all"), serving.InTurn, serving.OnePage, serving.ByCaller, serving.JSON(s.list)),
		serving.Get(one, s.loading(showRule), serving.InTurn, serving.OnePage, serving.ByCaller.Tagged(), serving.NoParameters, serving.JSON(s.show)),
		serving.Patch(one, s.loading("reservations:update"), serving.InTurn, serving.OnePage, serving.ByNobody.Tagged(), serving.JSON(s.change)),
		serving.Delete(one, s.loading("reservations:delete"), serving.InLine, serving.OnePage, serving.ByNobody.Tagged(), serving.JSON(s.cancel)),
	}
}
