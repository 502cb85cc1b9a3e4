// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
)

// Routes returns the calls that have Blazar's form.
func (s API) Routes() []serving.Route {
	return slices.Concat(leases{s, newTexts()}.routes(), hosts{s}.routes(), addresses{s.Options, s.Now, s.NewID}.routes())
}

// The answers depend on the microversion too.
var (
	byCaller = serving.ByCaller.Varying(microversionHeader)
	byNobody = serving.ByNobody.Varying(microversionHeader)
)

// rule is serving.Rule with an error in Blazar's words.
func rule(name string) serving.Access {
	return versioned(serving.Loading([]string{name}, allowed(name)))
}

// versioned returns the same access for calls with a microversion.
func versioned(a serving.Access) serving.Access {
	a.Admit = append([]serving.Step{microversion}, a.Admit...)
	return a
}

// routes returns the calls about leases.
func (s leases) routes() []serving.Route {
	const path, one = "/v1/leases", "/v1/leases/:id"
	const get, put = "blazar:leases:get", "blazar:leases:put"
	return []serving.Route{
		serving.Post(path, rule("blazar:leases:post"), serving.InTurn, serving.OneThing, byNobody.Tagged(), serving.ForProject, serving.JSON(s.create)),
		serving.Get(path, rule(get), serving.InTurn, serving.WholeList, byCaller, s.list),
		serving.Get(one, s.loading(get), serving.InLine, serving.OneThing, byCaller.Tagged(), serving.JSON(s.show)),
		serving.Put(one, s.loading(put), serving.InTurn, serving.OneThing, byNobody.Tagged(), serving.JSON(s.change)),
		serving.Patch(one, s.loading(put), serving.InTurn, serving.OneThing, byNobody.Tagged(), serving.JSON(s.change)),
		serving.Delete(one, s.loading("blazar:leases:delete"), serving.InLine, serving.Brief, byNobody.Tagged(), serving.JSON(s.cancel)),
		serving.Get(one+"/hosts", s.loading(get), serving.InLine, serving.OneThing, byCaller, serving.JSON(s.listHosts)),
	}
}

// loading admits callers that may act on the lease in the path, and loads it.
func (s leases) loading(rule string) serving.Access {
	return versioned(serving.Loading([]string{rule}, s.find(rule)))
}

// routes returns the calls about hosts.
func (s hosts) routes() []serving.Route {
	const path, one = "/v1/os-hosts", "/v1/os-hosts/:id"
	host := func(name string) serving.Access { return rule("blazar:oshosts:" + name) }
	return []serving.Route{
		serving.Get(path, host("get"), serving.InTurn, serving.WholeList, byCaller, serving.Computed(s.list)),
		serving.Post(path, host("post"), serving.InLine, serving.OneThing, byNobody.Tagged(), serving.JSON(s.add)),
		serving.Get(one, host("get"), serving.InLine, serving.OneThing, byCaller.Tagged(), serving.JSON(s.show)),
		serving.Put(one, host("put"), serving.InLine, serving.OneThing, byNobody.Tagged(), serving.JSON(s.change)),
		serving.Patch(one, host("put"), serving.InLine, serving.OneThing, byNobody.Tagged(), serving.JSON(s.change)),
		serving.Delete(one, host("delete"), serving.InLine, serving.Brief, byNobody.Tagged(), serving.JSON(s.remove)),
		serving.Get(path+"/allocations", host("get_allocations"), serving.InTurn, serving.WholeList, byCaller, s.listAllocations),
		serving.Get(one+"/allocation", host("get_allocations"), serving.InTurn, serving.OnePage, byCaller, s.showAllocation),
		serving.Get(path+"/properties", host("get_resource_properties"), serving.InTurn, serving.OnePage, byCaller, serving.Computed(s.listProperties)),
		serving.Patch(path+"/properties/:name", host("update_resource_properties"), serving.InLine, serving.OneThing, byNobody, serving.JSON(s.changeProperty)),
	}
}

// routes returns the calls about floating IPs.
func (s addresses) routes() []serving.Route {
	const path, one = "/v1/floatingips", "/v1/floatingips/:id"
	ip := func(name string) serving.Access { return rule("blazar:floatingips:" + name) }
	return []serving.Route{
		serving.Get(path, ip("get"), serving.InLine, serving.WholeList, byCaller, serving.JSON(s.list)),
		serving.Post(path, ip("post"), serving.InLine, serving.Brief, byNobody, serving.JSON(s.add)),
		serving.Get(one, ip("get"), serving.InLine, serving.Brief, byCaller, serving.JSON(s.show)),
		serving.Delete(one, ip("delete"), serving.InLine, serving.Brief, byNobody, serving.JSON(s.remove)),
	}
}
