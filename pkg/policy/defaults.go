// SPDX-License-Identifier: Apache-2.0

package policy

// Rule is a rule with its default check string.
type Rule struct {
	Name string
	// Check is a check string in oslo.policy's language.
	Check       string
	Description string
	// Operations are the REST calls that the rule guards. It is empty for a base rule, to which
	// other rules refer.
	Operations []Operation
	// Scopes are the token scopes that the rule accepts; an empty list means every scope.
	Scopes []Scope
}

// Operation is a REST call.
type Operation struct {
	Method, Path string
}

// ProjectID is the attribute of a target that contains the project to which the resource belongs,
// or which the caller names.
const ProjectID = "project_id"

// The check strings follow the personas of OpenStack's secure RBAC: a reader lists, a member
// writes, an admin does everything, and a reader of the system reads everything.
const (
	anyReader   = "rule:project_reader_or_admin or rule:system_reader"
	everyReader = "rule:context_is_admin or rule:system_reader"
	member      = "rule:project_member_or_admin"
	admin       = "rule:context_is_admin"
)

// Defaults returns all rules, in the order of the sample.
func Defaults() []Rule {
	var all []Rule
	for _, rules := range [][]Rule{baseRules, reservationRules, otherRules, energyRules, packingRules, bestEffortRules, blazarRules} {
		all = append(all, rules...)
	}
	return all
}

var baseRules = []Rule{
	{Name: "context_is_admin", Check: "role:admin and is_admin_project:True",
		Description: "An admin of the cloud. Where Keystone has an admin project, only a token for that project counts."},
	{Name: "admin_required", Check: "rule:context_is_admin",
		Description: "An admin of the cloud, under the name that other services use."},
	{Name: "service_api", Check: "role:service",
		Description: "A service of the cloud, such as Nova."},
	{Name: "system_reader", Check: "role:reader and system_scope:all",
		Description: "May read everything: a reader with a token for the system."},
	{Name: "project_member_api", Check: "role:member and project_id:%(project_id)s",
		Description: "A member of the project."},
	{Name: "project_reader_api", Check: "role:reader and project_id:%(project_id)s",
		Description: "A reader of the project."},
	{Name: "project_member_or_admin", Check: "rule:project_member_api or rule:context_is_admin",
		Description: "A member of the project, or an admin."},
	{Name: "project_reader_or_admin", Check: "rule:project_reader_api or rule:context_is_admin",
		Description: "A reader of the project, or an admin."},
}

var (
	projectOnly = []Scope{Project}
	bothScopes  = []Scope{Project, System}
)

var reservationRules = []Rule{
	{Name: "reservations:create", Check: member, Scopes: projectOnly,
		Description: "Create a reservation, or get an offer.",
		Operations:  []Operation{{"POST", "/v1/reservations"}, {"POST", "/v1/groups"}, {"POST", "/v1/series"}}},
	{Name: "reservations:list", Check: anyReader, Scopes: bothScopes,
		Description: "List the reservations, the groups and the series of the caller's project.",
		Operations:  []Operation{{"GET", "/v1/reservations"}, {"GET", "/v1/groups"}, {"GET", "/v1/series"}}},
	{Name: "reservations:list_all", Check: everyReader, Scopes: bothScopes,
		Description: "List the reservations, the groups and the series of other projects (all_projects, project_id), and their leases.",
		Operations:  []Operation{{"GET", "/v1/reservations"}, {"GET", "/v1/groups"}, {"GET", "/v1/series"}, {"GET", "/v1/leases"}}},
	{Name: "reservations:get", Check: anyReader, Scopes: bothScopes,
		Description: "Show a reservation, a group or a series of the caller's project.",
		Operations:  []Operation{{"GET", "/v1/reservations/{id}"}, {"GET", "/v1/groups/{id}"}, {"GET", "/v1/series/{id}"}}},
	{Name: "reservations:get_all_projects", Check: everyReader, Scopes: bothScopes,
		Description: "Show a reservation of another project, and name it in the calendar. For other callers it does not exist.",
		Operations:  []Operation{{"GET", "/v1/reservations/{id}"}, {"GET", "/v1/groups/{id}"}, {"GET", "/v1/series/{id}"}, {"GET", "/v1/calendar"}}},
	{Name: "reservations:get_hosts", Check: everyReader, Scopes: bothScopes,
		Description: "See the hosts of an offer, and of a reservation before it is active, while they may still change.",
		Operations: []Operation{
			{"POST", "/v1/reservations"}, {"GET", "/v1/reservations"},
			{"GET", "/v1/reservations/{id}"}, {"PATCH", "/v1/reservations/{id}"}, {"GET", "/v1/calendar"},
			{"POST", "/v1/groups"}, {"POST", "/v1/series"}, {"GET", "/v1/groups"}, {"GET", "/v1/series"}, {"GET", "/v1/groups/{id}"}, {"GET", "/v1/series/{id}"}, {"PATCH", "/v1/groups/{id}"}, {"PATCH", "/v1/series/{id}"},
		}},
	{Name: "reservations:update", Check: member, Scopes: bothScopes,
		Description: "Change a reservation, a group or a series of the caller's project.",
		Operations:  []Operation{{"PATCH", "/v1/reservations/{id}"}, {"PATCH", "/v1/groups/{id}"}, {"PATCH", "/v1/series/{id}"}}},
	{Name: "reservations:update_all_projects", Check: admin, Scopes: bothScopes,
		Description: "Change a reservation, a group or a series of another project.",
		Operations:  []Operation{{"PATCH", "/v1/reservations/{id}"}, {"PATCH", "/v1/groups/{id}"}, {"PATCH", "/v1/series/{id}"}}},
	{Name: "reservations:delete", Check: member, Scopes: bothScopes,
		Description: "Cancel a reservation, a group or a series of the caller's project.",
		Operations:  []Operation{{"DELETE", "/v1/reservations/{id}"}, {"DELETE", "/v1/groups/{id}"}, {"DELETE", "/v1/series/{id}"}}},
	{Name: "reservations:delete_all_projects", Check: admin, Scopes: bothScopes,
		Description: "Cancel a reservation, a group or a series of another project.",
		Operations:  []Operation{{"DELETE", "/v1/reservations/{id}"}, {"DELETE", "/v1/groups/{id}"}, {"DELETE", "/v1/series/{id}"}}},
	{Name: "reservations:maintain", Check: admin, Scopes: bothScopes,
		Description: "Plan maintenance of hosts, get an offer for it, change and cancel it, beside the rules about reservations.",
		Operations: []Operation{
			{"POST", "/v1/reservations"}, {"PATCH", "/v1/reservations/{id}"}, {"DELETE", "/v1/reservations/{id}"},
		}},
}

var otherRules = []Rule{
	{Name: "availability:get", Check: anyReader, Scopes: bothScopes,
		Description: "See when hosts are free.",
		Operations:  []Operation{{"GET", "/v1/availability"}}},
	{Name: "offers:create", Check: anyReader, Scopes: bothScopes,
		Description: "Get offers for ranges of quantities and durations.",
		Operations:  []Operation{{"POST", "/v1/offers"}}},
	{Name: "events:get", Check: anyReader, Scopes: bothScopes,
		Description: "Follow what changes on the calendar.",
		Operations:  []Operation{{"GET", "/v1/events"}}},
	{Name: "webhooks:create", Check: member, Scopes: projectOnly,
		Description: "Let a URL be told of changes of the caller's project.",
		Operations:  []Operation{{"POST", "/v1/webhooks"}}},
	{Name: "webhooks:create_all_projects", Check: admin, Scopes: bothScopes,
		Description: "Let a URL be told of changes of all projects (all_projects), beside webhooks:create.",
		Operations:  []Operation{{"POST", "/v1/webhooks"}}},
	{Name: "webhooks:list", Check: member, Scopes: bothScopes,
		Description: "List the webhooks of the caller's project, with their URLs, but without their secrets.",
		Operations:  []Operation{{"GET", "/v1/webhooks"}}},
	{Name: "webhooks:list_all", Check: admin, Scopes: bothScopes,
		Description: "List the webhooks of other projects (all_projects, project_id).",
		Operations:  []Operation{{"GET", "/v1/webhooks"}}},
	{Name: "webhooks:get", Check: member, Scopes: bothScopes,
		Description: "Show a webhook of the caller's project, and what has become of its deliveries.",
		Operations:  []Operation{{"GET", "/v1/webhooks/{id}"}}},
	{Name: "webhooks:get_all_projects", Check: admin, Scopes: bothScopes,
		Description: "Show a webhook of another project. For other callers it does not exist.",
		Operations:  []Operation{{"GET", "/v1/webhooks/{id}"}}},
	{Name: "webhooks:delete", Check: member, Scopes: bothScopes,
		Description: "Delete a webhook of the caller's project.",
		Operations:  []Operation{{"DELETE", "/v1/webhooks/{id}"}}},
	{Name: "webhooks:delete_all_projects", Check: admin, Scopes: bothScopes,
		Description: "Delete a webhook of another project.",
		Operations:  []Operation{{"DELETE", "/v1/webhooks/{id}"}}},
	{Name: "limits:get", Check: anyReader, Scopes: bothScopes,
		Description: "See the limits and what the caller's project uses of them.",
		Operations:  []Operation{{"GET", "/v1/limits"}}},
	{Name: "limits:get_all_projects", Check: everyReader, Scopes: bothScopes,
		Description: "See what other projects use of their limits.",
		Operations:  []Operation{{"GET", "/v1/limits"}}},
	{Name: "usage:get", Check: anyReader, Scopes: bothScopes,
		Description: "See the host-hours of the caller's project.",
		Operations:  []Operation{{"GET", "/v1/usage"}}},
	{Name: "usage:get_all_projects", Check: everyReader, Scopes: bothScopes,
		Description: "See the host-hours of all projects and of hosts.",
		Operations:  []Operation{{"GET", "/v1/usage"}}},
	{Name: "hosts:list", Check: anyReader, Scopes: bothScopes,
		Description: "List the hosts, see their facts in the calendar, and follow how they change.",
		Operations:  []Operation{{"GET", "/v1/hosts"}, {"GET", "/v1/calendar"}, {"GET", "/v1/events"}}},
	{Name: "hosts:get", Check: anyReader, Scopes: bothScopes,
		Description: "Show a host.",
		Operations:  []Operation{{"GET", "/v1/hosts/{name}"}}},
	{Name: "hosts:get_instances", Check: everyReader, Scopes: bothScopes,
		Description: "See the instances of all projects on a host, and the problem of a host.",
		Operations:  []Operation{{"GET", "/v1/hosts"}, {"GET", "/v1/hosts/{name}"}, {"GET", "/v1/calendar"}}},
	{Name: "hosts:update", Check: admin, Scopes: bothScopes,
		Description: "Admit a host to the pool or take it out, and set its power and its properties.",
		Operations:  []Operation{{"PATCH", "/v1/hosts/{name}"}}},
	{Name: "properties:list", Check: anyReader, Scopes: bothScopes,
		Description: "List the properties that a filter can use.",
		Operations:  []Operation{{"GET", "/v1/properties"}}},
	{Name: "properties:get_hidden", Check: everyReader, Scopes: bothScopes,
		Description: "See hidden properties, and use them in a filter.",
		Operations: []Operation{
			{"GET", "/v1/properties"}, {"GET", "/v1/hosts"}, {"GET", "/v1/hosts/{name}"},
			{"GET", "/v1/availability"}, {"POST", "/v1/offers"}, {"POST", "/v1/reservations"}, {"PATCH", "/v1/reservations/{id}"},
			{"POST", "/v1/groups"}, {"POST", "/v1/series"},
		}},
	{Name: "properties:update", Check: admin, Scopes: bothScopes,
		Description: "Hide or show a property.",
		Operations:  []Operation{{"PATCH", "/v1/properties/{name}"}}},
	{Name: "calendar:get", Check: anyReader, Scopes: bothScopes,
		Description: "See the claims on each host.",
		Operations:  []Operation{{"GET", "/v1/calendar"}}},
	{Name: "scheduler:filter", Check: "rule:service_api or rule:context_is_admin", Scopes: bothScopes,
		Description: "Filter the hosts that an instance may use.",
		Operations:  []Operation{{"POST", "/v1/scheduler/filter"}}},
	{Name: "scheduler:weigh", Check: "rule:service_api or rule:context_is_admin", Scopes: bothScopes,
		Description: "Filter and weigh the hosts of an instance, and record the reservation of the instance, as the plugin in nova-scheduler does.",
		Operations:  []Operation{{"POST", "/v1/scheduler/weigh"}}},
	{Name: "decisions:get", Check: anyReader, Scopes: bothScopes,
		Description: "See the decisions about instances of the caller's project, evictions included, without the names of hosts.",
		Operations:  []Operation{{"GET", "/v1/decisions/{id}"}}},
	{Name: "decisions:get_all_projects", Check: everyReader, Scopes: bothScopes,
		Description: "See the decisions about instances of other projects. For other callers they do not exist.",
		Operations:  []Operation{{"GET", "/v1/decisions/{id}"}}},
	{Name: "decisions:get_hosts", Check: everyReader, Scopes: bothScopes,
		Description: "See the hosts of a decision: the chosen one, the weight of each, and why the others were refused.",
		Operations:  []Operation{{"GET", "/v1/decisions/{id}"}}},
	{Name: "images:list", Check: everyReader, Scopes: bothScopes,
		Description: "List the images that Almanac has put on hosts for reservations, and the transfers under way.",
		Operations:  []Operation{{"GET", "/v1/images"}}},
	{Name: "preemptible:list", Check: everyReader, Scopes: bothScopes,
		Description: "List the preemptible instances of all projects, and the cost of losing each.",
		Operations:  []Operation{{"GET", "/v1/preemptible"}}},
	{Name: "preemptible:get_cost", Check: everyReader, Scopes: bothScopes,
		Description: "See which instances would be evicted for another one, on each host.",
		Operations:  []Operation{{"GET", "/v1/preemptible/cost"}}},
	{Name: "demo:list", Check: admin, Scopes: bothScopes,
		Description: "List the servers of a simulated cloud.",
		Operations:  []Operation{{"GET", "/v1/demo/servers"}}},
	{Name: "demo:create", Check: admin, Scopes: bothScopes,
		Description: "Create a server in a simulated cloud, for any project.",
		Operations:  []Operation{{"POST", "/v1/demo/servers"}}},
	{Name: "demo:delete", Check: admin, Scopes: bothScopes,
		Description: "Delete a server of a simulated cloud.",
		Operations:  []Operation{{"DELETE", "/v1/demo/servers/{id}"}}},
	{Name: "feed:get", Check: anyReader, Scopes: projectOnly,
		Description: "Read the project's reservations as an iCalendar feed.",
		Operations:  []Operation{{"GET", "/v1/reservations.ics"}, {"GET", "/v1/feed"}}},
	{Name: "doctor:get", Check: admin, Scopes: bothScopes,
		Description: "Check that reservations and cloud are consistent.",
		Operations:  []Operation{{"GET", "/v1/doctor"}}},
	{Name: "doctor:fix", Check: admin, Scopes: bothScopes,
		Description: "Fix the inconsistencies that the check has found.",
		Operations:  []Operation{{"POST", "/v1/doctor"}}},
	{Name: "readiness:get", Check: "rule:service_api or rule:context_is_admin or rule:system_reader", Scopes: bothScopes,
		Description: "See why the service is not ready.",
		Operations:  []Operation{{"GET", "/v1/readiness"}}},
}

var energyRules = []Rule{
	{Name: "energy:get", Check: everyReader, Scopes: bothScopes,
		Description: "See the state of the energy controller, its alarms, and what it has saved.",
		Operations:  []Operation{{"GET", "/v1/energy"}}},
	{Name: "energy:update", Check: admin, Scopes: bothScopes,
		Description: "Set modes of the energy controller, stop or resume switching off, or reset its breaker.",
		Operations:  []Operation{{"PATCH", "/v1/energy"}}},
	{Name: "energy:get_plan", Check: everyReader, Scopes: bothScopes,
		Description: "See which hosts should be switched, and why.",
		Operations:  []Operation{{"GET", "/v1/energy/plan"}}},
	{Name: "energy:approve", Check: admin, Scopes: bothScopes,
		Description: "Approve a plan, which is then carried out.",
		Operations:  []Operation{{"POST", "/v1/energy/plan"}}},
	{Name: "energy:list_hosts", Check: everyReader, Scopes: bothScopes,
		Description: "List the hosts with their power.",
		Operations:  []Operation{{"GET", "/v1/energy/hosts"}}},
	{Name: "energy:get_host", Check: everyReader, Scopes: bothScopes,
		Description: "See why a host is on or off, and what was done with it.",
		Operations:  []Operation{{"GET", "/v1/energy/hosts/{name}"}}},
	{Name: "energy:order", Check: admin, Scopes: bothScopes,
		Description: "Switch a host by hand, release it, or test whether it wakes.",
		Operations:  []Operation{{"POST", "/v1/energy/hosts/{name}"}}},
	{Name: "energy:get_audit", Check: everyReader, Scopes: bothScopes,
		Description: "Read the audit of power changes, and how many hosts were in use.",
		Operations:  []Operation{{"GET", "/v1/energy/audit"}, {"GET", "/v1/energy/demand"}}},
}

var packingRules = []Rule{
	{Name: "packing:plan", Check: everyReader, Scopes: bothScopes,
		Description: "Plan live migrations, and see how the instances of all projects share the hosts.",
		Operations:  []Operation{{"POST", "/v1/packing"}}},
	{Name: "packing:list_runs", Check: everyReader, Scopes: bothScopes,
		Description: "List the runs of plans.",
		Operations:  []Operation{{"GET", "/v1/packing/runs"}}},
	{Name: "packing:get_run", Check: everyReader, Scopes: bothScopes,
		Description: "See the progress of a run.",
		Operations:  []Operation{{"GET", "/v1/packing/runs/{id}"}}},
	{Name: "packing:apply", Check: admin, Scopes: bothScopes,
		Description: "Have instances moved.",
		Operations:  []Operation{{"POST", "/v1/packing/runs"}}},
	{Name: "packing:stop", Check: admin, Scopes: bothScopes,
		Description: "Have no more instances moved.",
		Operations:  []Operation{{"DELETE", "/v1/packing/runs/{id}"}}},
}

var bestEffortRules = []Rule{
	{Name: "besteffort:create", Check: member, Scopes: projectOnly,
		Description: "Put best-effort work into the queue.",
		Operations:  []Operation{{"POST", "/v1/besteffort"}}},
	{Name: "besteffort:list", Check: anyReader, Scopes: bothScopes,
		Description: "List the best-effort work of the caller's project.",
		Operations:  []Operation{{"GET", "/v1/besteffort"}}},
	{Name: "besteffort:list_all", Check: everyReader, Scopes: bothScopes,
		Description: "List the best-effort work of other projects (all_projects, project_id).",
		Operations:  []Operation{{"GET", "/v1/besteffort"}}},
	{Name: "besteffort:get", Check: anyReader, Scopes: bothScopes,
		Description: "Show best-effort work of the caller's project.",
		Operations:  []Operation{{"GET", "/v1/besteffort/{id}"}}},
	{Name: "besteffort:get_all_projects", Check: everyReader, Scopes: bothScopes,
		Description: "Show best-effort work of another project. For other callers it does not exist.",
		Operations:  []Operation{{"GET", "/v1/besteffort/{id}"}}},
	{Name: "besteffort:get_hosts", Check: everyReader, Scopes: bothScopes,
		Description: "See on which hosts best-effort work runs.",
		Operations:  []Operation{{"GET", "/v1/besteffort"}, {"GET", "/v1/besteffort/{id}"}}},
	{Name: "besteffort:delete", Check: member, Scopes: bothScopes,
		Description: "Cancel best-effort work of the caller's project.",
		Operations:  []Operation{{"DELETE", "/v1/besteffort/{id}"}}},
	{Name: "besteffort:delete_all_projects", Check: admin, Scopes: bothScopes,
		Description: "Cancel best-effort work of another project.",
		Operations:  []Operation{{"DELETE", "/v1/besteffort/{id}"}}},
}
