// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"

	"github.com/almanac-cloud/almanac/pkg/policy"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Authenticator identifies the sender of a request. It fails with an Unauthorized or a Denied
// fault, or with an Unavailable one if it cannot decide.
type Authenticator interface {
	Authenticate(r *http.Request) (policy.Credentials, error)
	// Knows reports whether Authenticate can answer without a call to another service.
	Knows(r *http.Request) bool
}

// Enforcer decides by policy rules; *policy.Enforcer implements it. It fails with a Denied fault
// that names the rule.
type Enforcer interface {
	Check(rule string, by policy.Credentials, target map[string]string) error
}

// Asker is the sender of a request, with the rules that apply to them. It belongs to one request
// and is not safe for concurrent use.
type Asker struct {
	policy.Credentials
	requestID string
	rules     Enforcer
	decided   map[decision]error
}

// decision identifies a question to the policy: whether a rule allows an action on a project's
// resource, or on one without a project.
type decision struct{ rule, project string }

// Check returns the error of the policy unless a rule allows the asker to act on what belongs to a project, or to none if it is
// empty.
func (a *Asker) Check(rule, project string) error {
	d := decision{rule, project}
	err, known := a.decided[d]
	if !known {
		target := make(map[string]string)
		if project != "" {
			target[policy.ProjectID] = project
		}
		err = a.rules.Check(rule, a.Credentials, target)
		a.decided[d] = err
	}
	return err
}

// May reports whether a rule allows that; see Check.
func (a *Asker) May(rule, project string) bool { return a.Check(rule, project) == nil }

// SeesHidden reports whether the asker sees hidden properties of hosts.
func (a *Asker) SeesHidden() bool { return a.May("properties:get_hidden", a.ProjectID) }

// Caller returns the asker as a booking.Caller, for actions on the asker's own project.
func (a *Asker) Caller() booking.Caller {
	return booking.Caller{ProjectID: a.ProjectID, UserID: a.UserID, RequestID: a.requestID, SeesHidden: a.SeesHidden()}
}

// owned is a reservation or a lease.
type owned interface{ BelongsTo(project string) bool }

// CallerFor returns the asker as a booking.Caller for a reservation or a lease. A rule must have allowed
// the request.
func (a *Asker) CallerFor(what owned) booking.Caller {
	by := a.Caller()
	by.Admin = !what.BelongsTo(a.ProjectID)
	return by
}
