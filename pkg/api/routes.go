// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// table returns the table of routes: everything that the service answers, and nothing else.
func (s *server) table() []route {
	return slices.Concat(
		s.openRoutes(), s.dashboardRoutes(), s.serviceRoutes(), s.reservationRoutes(), s.hostRoutes(), s.energyRoutes(),
		s.packingRoutes(), s.bestEffortRoutes(), s.demoRoutes(), s.blazarRoutes(),
	)
}

// Call is a row of the table of routes, for those who check it or draw from it.
type Call struct {
	Method, Path, Caller, Turn string
	Rules                      []string // of the policy
	Largest                    int64    // bytes of an answer
	CacheControl               string
	Vary                       []string
	Whole                      bool // no column is empty
}

// Calls returns the table of routes of a service with these options.
func Calls(o Options) (calls []Call) {
	for _, r := range (&server{Options: o}).table() {
		calls = append(calls, Call{
			r.method, r.path, r.who.caller, string(r.turn), r.who.rules, int64(r.largest), r.keeps.control, r.keeps.vary,
			r.method != "" && r.path != "" && r.who.caller != "" && r.turn != "" && r.largest > 0 && r.keeps.control != "" && len(r.steps) > 0,
		})
	}
	return calls
}

// openRoutes are those of the API that need no token.
func (s *server) openRoutes() []route {
	return []route{
		{"GET", "/", openToAll(), atOnce, brief, byAnybodyNew, steps(s.json(s.versions))},
		{"GET", "/v1", openToAll(), atOnce, brief, byAnybodyNew, steps(s.json(s.version))},
		{"GET", healthPath, openToAll(), shared, brief, byNobody, steps(s.health)},
		{"HEAD", healthPath, openToAll(), shared, brief, byNobody, steps(s.health)},
		{"GET", "/metrics", openToAll(), shared, onePage, byNobody, steps(gin.WrapH(s.scrapes))},
		{"GET", "/v1/openapi.yaml", openToAll(), atOnce, fixedText, byAnybody, steps(document(openAPIDocument))},
		{"GET", "/v1/openapi-blazar.yaml", openToAll(), atOnce, fixedText, byAnybody, steps(document(openAPIOfBlazar))},
		{"GET", feeds + ":project_id/:file", s.withLink(), inTurn, onePage, byHolder, steps(s.feed)},
	}
}

// dashboardRoutes are the page and its session. The page is no part of the API: its paths may change.
func (s *server) dashboardRoutes() []route {
	if s.Dashboard == nil {
		return nil
	}
	return []route{
		{"GET", sessionPath, s.signedInOrNot(), inLine, brief, byNobody, steps(s.json(s.showSession))},
		{"POST", sessionPath, openToAll(), ofAddress, brief, byNobody, steps(s.json(s.signIn))},
		{"PATCH", sessionPath, s.signedIn(), inLine, brief, byNobody, steps(s.json(s.switchProject))},
		{"DELETE", sessionPath, openToAll(), ofAddress, brief, byNobody, steps(s.signOut)},
		{"GET", "/dashboard/projects", s.rule("reservations:list_all"), inLine, onePage, byNobody, steps(s.json(s.nameProjects))},
		// The redirection is relative, so that it is right behind a proxy with a prefix too.
		{"GET", "/dashboard", openToAll(), atOnce, brief, byAnybodyNew, steps(redirect("dashboard/"))},
		{"GET", dashboardPath + "*file", openToAll(), atOnce, onePage, byAnybodyNew, steps(gin.WrapH(http.StripPrefix("/dashboard", s.Dashboard)))},
	}
}

// serviceRoutes are those for Nova and for operators.
func (s *server) serviceRoutes() []route {
	return []route{
		{"POST", "/v1/scheduler/filter", s.rule("scheduler:filter"), ahead, onePage, byNobody, steps(s.noParameters, s.json(s.filterHosts))},
		{"POST", "/v1/scheduler/weigh", s.rule("scheduler:weigh"), ahead, onePage, byNobody, steps(s.noParameters, s.json(s.weighHosts))},
		{"GET", "/v1/readiness", s.rule("readiness:get"), ahead, brief, byNobody, steps(s.noParameters, s.json(s.readiness))},
		{"GET", "/v1/decisions/:id", s.rule("decisions:get"), inLine, oneThing, byCaller, steps(s.noParameters, s.json(s.showDecisions))},
		{"GET", "/v1/images", s.rule("images:list"), inTurn, wholeList, byCaller, steps(s.computed(s.listImages))},
		{"GET", "/v1/preemptible", s.rule("preemptible:list"), inTurn, wholeList, byCaller, steps(s.computed(s.listPreemptible))},
		{"GET", "/v1/preemptible/cost", s.rule("preemptible:get_cost"), inTurn, oneThing, byCaller, steps(s.json(s.costPreemption))},
		{"GET", "/v1/doctor", s.rule("doctor:get"), inLine, onePage, byNobody, steps(s.noParameters, s.json(s.examine))},
		{"POST", "/v1/doctor", s.rule("doctor:fix"), inLine, onePage, byNobody, steps(s.noParameters, s.json(s.fix))},
	}
}

// reservationRoutes are those about reservations and about times.
func (s *server) reservationRoutes() []route {
	return []route{
		{"POST", "/v1/reservations", s.rule("reservations:create"), inTurn, oneThing, byNobody, steps(s.forProject, s.json(s.createReservation))},
		{"GET", "/v1/reservations", s.rules("reservations:list", "reservations:list_all"), inTurn, onePage, byCaller, steps(s.json(s.listReservations))},
		{"GET", "/v1/reservations/:id", s.ofReservation(showRule), inLine, oneThing, byCaller, steps(s.noParameters, s.json(s.showReservation))},
		{"PATCH", "/v1/reservations/:id", s.ofReservation("reservations:update"), inTurn, oneThing, byNobody, steps(s.json(s.changeReservation))},
		{"DELETE", "/v1/reservations/:id", s.ofReservation("reservations:delete"), inLine, brief, byNobody, steps(s.json(s.deleteReservation))},
		{"GET", "/v1/reservations.ics", s.rule("feed:get"), inTurn, onePage, byCaller, steps(s.forProject, s.noParameters, s.reservationsCalendar)},
		{"GET", "/v1/feed", s.rule("feed:get"), inLine, brief, byCaller, steps(s.forProject, s.noParameters, s.json(s.feedLink))},
		{"GET", "/v1/availability", s.rule("availability:get"), inTurn, oneThing, byCaller, steps(s.json(s.availability))},
		{"GET", "/v1/calendar", s.rule("calendar:get"), inTurn, onePage, byCaller, steps(s.calendar)},
		{"GET", eventsPath, s.rule("events:get"), streaming, oneThing, byNobody, steps(s.followEvents)},
		{"GET", "/v1/limits", s.rule("limits:get"), inTurn, brief, byCaller, steps(s.computed(s.showLimits))},
		{"GET", "/v1/usage", s.rule("usage:get"), inTurn, onePage, byCaller, steps(s.showUsage)},
	}
}

// hostRoutes are those about hosts and their properties.
func (s *server) hostRoutes() []route {
	return []route{
		{"GET", "/v1/hosts", s.rule("hosts:list"), inTurn, onePage, byCaller, steps(s.computed(s.listHosts))},
		{"GET", "/v1/hosts/:name", s.rule("hosts:get"), inLine, oneThing, byCaller, steps(s.noParameters, s.json(s.showHost))},
		{"PATCH", "/v1/hosts/:name", s.rule("hosts:update"), inLine, oneThing, byNobody, steps(s.noParameters, s.json(s.changeHost))},
		{"GET", "/v1/properties", s.rule("properties:list"), inTurn, onePage, byCaller, steps(s.noParameters, s.computed(s.listProperties))},
		{"PATCH", "/v1/properties/:name", s.rule("properties:update"), inLine, oneThing, byNobody, steps(s.noParameters, s.json(s.changeProperty))},
	}
}

// energyRoutes are those about hosts that are switched.
func (s *server) energyRoutes() []route {
	there := s.there(s.Energy != nil, fault.New(fault.NotFound, "this process has no energy controller"))
	return []route{
		{"GET", "/v1/energy", s.rule("energy:get"), inLine, oneThing, byCaller, steps(there, s.noParameters, s.json(s.showEnergy))},
		{"PATCH", "/v1/energy", s.rule("energy:update"), inLine, oneThing, byNobody, steps(there, s.noParameters, s.json(s.changeEnergy))},
		{"GET", "/v1/energy/plan", s.rule("energy:get_plan"), inLine, onePage, byCaller, steps(there, s.noParameters, s.json(s.showPlan))},
		{"POST", "/v1/energy/plan", s.rule("energy:approve"), inLine, onePage, byNobody, steps(there, s.noParameters, s.json(s.approvePlan))},
		{"GET", "/v1/energy/hosts", s.rule("energy:list_hosts"), inLine, onePage, byCaller, steps(there, s.json(s.listEnergyHosts))},
		{"GET", "/v1/energy/hosts/:name", s.rule("energy:get_host"), inLine, oneThing, byCaller, steps(there, s.noParameters, s.json(s.showEnergyHost))},
		{"POST", "/v1/energy/hosts/:name", s.rule("energy:order"), inLine, oneThing, byNobody, steps(there, s.json(s.orderPower))},
		{"GET", "/v1/energy/audit", s.rule("energy:get_audit"), inLine, onePage, byCaller, steps(there, s.json(s.listAudit))},
		{"GET", "/v1/energy/demand", s.rule("energy:get_audit"), inLine, onePage, byCaller, steps(there, s.json(s.listDemand))},
	}
}

// packingRoutes are those about live migrations.
func (s *server) packingRoutes() []route {
	there := s.there(s.Packing.Admin != nil, fault.New(fault.Conflict,
		"no instances can be moved here: moves require [inventory] source = openstack or simulated, and the roles api and inventory in the same process"))
	return []route{
		{"POST", "/v1/packing", s.rule("packing:plan"), inLine, wholeList, byNobody, steps(there, s.noParameters, s.json(s.planPacking))},
		{"GET", packingRunsPath, s.rule("packing:list_runs"), inLine, onePage, byCaller, steps(there, s.json(s.listPackingRuns))},
		{"POST", packingRunsPath, s.rule("packing:apply"), inLine, wholeList, byNobody, steps(there, s.noParameters, s.json(s.applyPacking))},
		{"GET", packingRunsPath + "/:id", s.rule("packing:get_run"), inLine, wholeList, byCaller, steps(there, s.noParameters, s.json(s.showPackingRun))},
		{"DELETE", packingRunsPath + "/:id", s.rule("packing:stop"), inLine, brief, byNobody, steps(there, s.noParameters, s.json(s.stopPackingRun))},
	}
}

// bestEffortRoutes are those about servers without a start time.
func (s *server) bestEffortRoutes() []route {
	there := s.there(s.BestEffort != nil, noBestEffort())
	const path = bestEffortPath
	return []route{
		{"POST", path, s.rule("besteffort:create"), inLine, oneThing, byNobody, steps(there, s.forProject, s.noParameters, s.json(s.submitBestEffort))},
		{"GET", path, s.rules("besteffort:list", "besteffort:list_all"), inLine, onePage, byCaller, steps(s.json(s.listBestEffort))},
		{"GET", path + "/:id", s.ofBestEffort("besteffort:get"), inLine, oneThing, byCaller, steps(s.noParameters, s.json(s.showBestEffort))},
		{"DELETE", path + "/:id", s.ofBestEffort("besteffort:delete"), inLine, brief, byNobody, steps(s.noParameters, s.json(s.cancelBestEffort))},
	}
}

// demoRoutes are those that exist only with a simulated cloud.
func (s *server) demoRoutes() []route {
	if s.Demo == nil {
		return nil
	}
	return []route{
		{"GET", "/v1/demo/servers", s.rule("demo:list"), inLine, onePage, byCaller, steps(s.noParameters, s.json(s.listDemoServers))},
		{"POST", "/v1/demo/servers", s.rule("demo:create"), inLine, brief, byNobody, steps(s.noParameters, s.json(s.createDemoServer))},
		{"DELETE", "/v1/demo/servers/:id", s.rule("demo:delete"), inLine, brief, byNobody, steps(s.noParameters, s.json(s.deleteDemoServer))},
	}
}

// blazarRoutes are those that have Blazar's form, unless they are switched off.
func (s *server) blazarRoutes() []route {
	if s.Blazar == nil {
		return nil
	}
	const (
		leases, hosts, ips  = "/v1/leases", "/v1/os-hosts", "/v1/floatingips"
		get, put, post, del = "get", "put", "post", "delete"
	)
	lease := func(rule string) access { return s.ofLease("blazar:leases:" + rule) }
	host := func(rule string) access { return s.blazarRule("blazar:oshosts:" + rule) }
	ip := func(rule string) access { return s.blazarRule("blazar:floatingips:" + rule) }
	return []route{
		{"POST", leases, s.blazarRule("blazar:leases:post"), inTurn, oneThing, byNobodyBlazar, steps(s.forProject, s.json(s.createLease))},
		{"GET", leases, s.blazarRule("blazar:leases:get"), inTurn, wholeList, byBlazarsCaller, steps(s.listLeases)},
		{"GET", leases + "/:id", lease(get), inLine, oneThing, byBlazarsCaller, steps(s.json(s.showLease))},
		{"PUT", leases + "/:id", lease(put), inTurn, oneThing, byNobodyBlazar, steps(s.json(s.changeLease))},
		{"PATCH", leases + "/:id", lease(put), inTurn, oneThing, byNobodyBlazar, steps(s.json(s.changeLease))},
		{"DELETE", leases + "/:id", lease(del), inLine, brief, byNobodyBlazar, steps(s.json(s.deleteLease))},
		{"GET", leases + "/:id/hosts", lease(get), inLine, oneThing, byBlazarsCaller, steps(s.json(s.listLeaseHosts))},

		{"GET", hosts, host(get), inTurn, wholeList, byBlazarsCaller, steps(s.computed(s.listBlazarHosts))},
		{"POST", hosts, host(post), inLine, oneThing, byNobodyBlazar, steps(s.json(s.addBlazarHost))},
		{"GET", hosts + "/:id", host(get), inLine, oneThing, byBlazarsCaller, steps(s.json(s.showBlazarHost))},
		{"PUT", hosts + "/:id", host(put), inLine, oneThing, byNobodyBlazar, steps(s.json(s.changeBlazarHost))},
		{"PATCH", hosts + "/:id", host(put), inLine, oneThing, byNobodyBlazar, steps(s.json(s.changeBlazarHost))},
		{"DELETE", hosts + "/:id", host(del), inLine, brief, byNobodyBlazar, steps(s.json(s.removeBlazarHost))},
		{"GET", hosts + "/allocations", host("get_allocations"), inTurn, wholeList, byBlazarsCaller, steps(s.listAllocations)},
		{"GET", hosts + "/:id/allocation", host("get_allocations"), inTurn, onePage, byBlazarsCaller, steps(s.showAllocation)},
		{"GET", hosts + "/properties", host("get_resource_properties"), inTurn, onePage, byBlazarsCaller, steps(s.computed(s.listBlazarProperties))},
		{"PATCH", hosts + "/properties/:name", host("update_resource_properties"), inLine, oneThing, byNobodyBlazar, steps(s.json(s.changeBlazarProperty))},

		{"GET", ips, ip(get), inLine, wholeList, byBlazarsCaller, steps(s.json(s.listFloatingIPs))},
		{"POST", ips, ip(post), inLine, brief, byNobodyBlazar, steps(s.json(s.addFloatingIP))},
		{"GET", ips + "/:id", ip(get), inLine, brief, byBlazarsCaller, steps(s.json(s.showFloatingIP))},
		{"DELETE", ips + "/:id", ip(del), inLine, brief, byNobodyBlazar, steps(s.json(s.removeFloatingIP))},
	}
}
