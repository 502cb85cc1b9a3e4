// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/almanac-cloud/almanac/reservation/enforcement"
	"github.com/almanac-cloud/almanac/reservation/enforcement/remote"
)

// Enforcement is section [enforcement]: what must allow bookings and changes, by Blazar's names.
type Enforcement struct {
	enforcement.Rules
	Service remote.Options
}

func enforcementOptions(e *Enforcement) []option {
	s := &e.Service
	return []option{
		subset(&e.Enabled, "enabled_filters", nil, enforcement.Names,
			"Filters that must allow each lease, each native reservation, and each change of its times, hosts or amounts. MaxLeaseDurationFilter: "+
				"max_lease_duration. ExternalServiceFilter: the operator's usage service, which hears of the end of each lease too."),
		integer(&e.MaxDuration, "max_lease_duration", -1, -1, 100*365*24*3600,
			"Maximum duration of a lease in seconds. -1 means no limit."),
		list(&e.MaxDurationExempt, "max_lease_duration_exempt_project_ids", nil,
			"IDs of the projects without a maximum duration."),
		text(&s.Base, "external_service_base_endpoint", "",
			"URL of the usage service, to which check-create, check-update and on-end are relative. It should end with a slash: "+
				"otherwise they replace its last part."),
		text(&s.CheckCreate, "external_service_check_create_endpoint", "",
			"URL instead of check-create, which is asked whether a lease may be booked."),
		text(&s.CommitCreate, "external_service_commit_create_endpoint", "",
			"URL that is told of a lease right before it is booked, for a service that counts in two phases, such as Coral Credits. Empty "+
				"means none."),
		text(&s.CheckUpdate, "external_service_check_update_endpoint", "",
			"URL instead of check-update, which is asked whether a lease may change."),
		text(&s.CommitUpdate, "external_service_commit_update_endpoint", "",
			"URL that is told of a change right before it is stored, for a service that counts in two phases. Empty means none."),
		text(&s.OnEnd, "external_service_on_end_endpoint", "",
			"URL instead of on-end, which is told that a lease has ended, was deleted, or was allowed but not booked."),
		text(&s.Token, "external_service_token", "",
			"Token for the usage service, in the header X-Auth-Token.").asSecret(),
		text(&s.BearerToken, "external_service_bearer_token", "",
			"Token for the usage service, in the header Authorization: Bearer.").asSecret(),
		boolean(&s.KeystoneToken, "external_service_keystone_token", false,
			"Send a token of Almanac's service user, as Chameleon's Blazar does. The usage service can act with it: trust it as you "+
				"trust Keystone. Requires [keystone_authtoken], and no external_service_token."),
		duration(&s.Timeout, "external_service_timeout", 10*time.Second, time.Second, 5*time.Minute,
			"Time limit for a call of the usage service. Without an answer, the request is refused. [api] request_timeout must be "+
				"longer than two calls."),
		list(&e.ServiceExempt, "external_service_exempt_project_ids", nil,
			"IDs of the projects about which the usage service is not asked."),
	}
}
