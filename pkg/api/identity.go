// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/policy"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Authenticator identifies the sender of a request. It fails with an Unauthorized or a Denied
// fault, or with an Unavailable one if it cannot decide.
type Authenticator interface {
	Authenticate(r *http.Request) (policy.Credentials, error)
	// Knows reports whether Authenticate can answer without a call to another service.
	Knows(r *http.Request) bool
}

// Fixed is an Authenticator that returns the same credentials for everybody on this machine.
type Fixed policy.Credentials

// Authenticate implements Authenticator. It denies a request addressed to a name other than this
// machine's own: a web page of another site can reach the loopback address under its own name if
// its name server returns that address.
func (f Fixed) Authenticate(r *http.Request) (policy.Credentials, error) {
	name := r.Host
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		name = host
	}
	if ip := net.ParseIP(strings.Trim(name, "[]")); name != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return policy.Credentials{}, fault.New(fault.Denied, "there are no passwords here, so Almanac answers only requests to localhost, not to %q", name)
	}
	who := policy.Credentials(f)
	who.IsAdminProject = true // without Keystone there is no other project
	return who, nil
}

// Knows implements Authenticator.
func (Fixed) Knows(*http.Request) bool { return true }

// Validator validates the tokens of a request (X-Auth-Token, X-Service-Token); *keystone.Validator
// implements it.
type Validator interface {
	Authenticate(r *http.Request) (keystone.Token, error)
	Knows(r *http.Request) bool
}

// Keystone is an Authenticator that relies on Keystone's tokens.
type Keystone struct {
	Tokens Validator
}

// Authenticate implements Authenticator.
func (k Keystone) Authenticate(r *http.Request) (policy.Credentials, error) {
	t, err := k.Tokens.Authenticate(r)
	if err != nil {
		return policy.Credentials{}, err
	}
	return CredentialsOf(t), nil
}

// Knows implements Authenticator.
func (k Keystone) Knows(r *http.Request) bool { return k.Tokens.Knows(r) }

// CredentialsOf returns the credentials of a token's owner, for policy rules.
func CredentialsOf(t keystone.Token) policy.Credentials {
	return policy.Credentials{
		UserID: t.UserID, UserDomainID: t.UserDomainID, ProjectID: t.ProjectID, ProjectDomainID: t.ProjectDomainID,
		DomainID: t.DomainID, System: t.System, IsAdminProject: t.IsAdminProject, Roles: t.Roles,
	}
}

// Enforcer decides by policy rules; *policy.Enforcer implements it. It fails with a Denied fault
// that names the rule.
type Enforcer interface {
	Check(rule string, by policy.Credentials, target map[string]string) error
}

// asker is the sender of a request, with the rules that apply to them. It belongs to one request
// and is not safe for concurrent use.
type asker struct {
	policy.Credentials
	requestID string
	rules     Enforcer
	decided   map[decision]error
}

// decision identifies a question to the policy: whether a rule allows an action on a project's
// resource, or on one without a project.
type decision struct{ rule, project string }

func (a *asker) check(rule, project string) error {
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

func (a *asker) may(rule, project string) bool { return a.check(rule, project) == nil }

func (a *asker) seesHidden() bool { return a.may("properties:get_hidden", a.ProjectID) }

// caller returns the asker as a booking.Caller, for actions on the asker's own project.
func (a *asker) caller() booking.Caller {
	return booking.Caller{ProjectID: a.ProjectID, UserID: a.UserID, RequestID: a.requestID, SeesHidden: a.seesHidden()}
}

// owned is a reservation or a lease.
type owned interface{ BelongsTo(project string) bool }

// callerFor returns the asker as a booking.Caller for a reservation or a lease. A rule must have allowed
// the request.
func (a *asker) callerFor(what owned) booking.Caller {
	by := a.caller()
	by.Admin = !what.BelongsTo(a.ProjectID)
	return by
}

const askerKey = "asker"

// authenticate identifies the caller and requires a project, unless the token is for the system: a
// caller without one would see every project's reservations.
func (s *server) authenticate(c *gin.Context) {
	from, unknown := s.senderOf(c), !s.Authenticator.Knows(c.Request)
	if unknown {
		if wait := s.takeFailure(from); wait > 0 {
			s.limited(c, wait, "too many requests from your address had a wrong token")
			return
		}
	}
	who, err := s.identified(c)
	if unknown && !fault.Is(err, fault.Unauthorized) {
		s.forgive(from)
	}
	if err != nil {
		s.metrics.authFailures.WithLabelValues(string(fault.Of(err).Kind)).Inc()
		s.fail(c, err)
		return
	}
	c.Set(askerKey, &asker{
		Credentials: who, requestID: c.GetString(requestIDKey), rules: s.Policy, decided: make(map[decision]error),
	})
}

// identified returns the owner of the request's token. It fails if the token is for neither a project nor the system.
func (s *server) identified(c *gin.Context) (policy.Credentials, error) {
	who, err := s.Authenticator.Authenticate(c.Request)
	if err == nil && who.ProjectID == "" && !who.System {
		err = fault.New(fault.Denied, "your token is for no project; get one for the project that the reservations belong to")
	}
	return who, err
}

func asking(c *gin.Context) *asker { return c.MustGet(askerKey).(*asker) }

// require admits callers that the rule allows to act on resources of their own project, or on
// resources without a project.
func (s *server) require(rule string) gin.HandlerFunc {
	return func(c *gin.Context) {
		by := asking(c)
		if err := by.check(rule, by.ProjectID); err != nil {
			s.fail(c, err)
		}
	}
}

// forProject refuses callers without a project.
func (s *server) forProject(c *gin.Context) {
	if asking(c).ProjectID == "" {
		s.fail(c, fault.New(fault.Denied, "your token is for the system; get one for the project that owns this"))
	}
}

// pathID returns the id in the path; a UUID may be written in any case.
func pathID(c *gin.Context) string { return placing.LowerUUID(c.Param("id")) }

const reservationKey = "reservation"

// find loads the reservation in the path. The rule decides about a reservation of the caller's own
// project, and the rule with the suffix _all_projects about any other: for callers that it denies,
// that reservation does not exist. A rule about changes must allow them for maintenance too.
func (s *server) find(rule string) gin.HandlerFunc {
	return func(c *gin.Context) {
		by, id := asking(c), pathID(c)
		r, err := s.Reader.Get(c.Request.Context(), id)
		if err == nil && !r.BelongsTo(by.ProjectID) {
			if by.may(rule+"_all_projects", r.ProjectID) {
				s.act(c, r, rule)
				return
			}
			err = booking.NotFound(id)
		}
		// A caller that may not act on its own reservations must not learn which ones exist.
		if denied := by.check(rule, by.ProjectID); denied != nil {
			err = denied
		}
		if err != nil {
			s.fail(c, err)
			return
		}
		s.act(c, r, rule)
	}
}

// showRule is the rule about who sees a reservation.
const showRule = "reservations:get"

// act lets a call act on a reservation that its rule allows.
func (s *server) act(c *gin.Context, r reservation.Reservation, rule string) {
	by := asking(c)
	if r.Maintenance && rule != showRule {
		if err := by.check(maintainRule, by.ProjectID); err != nil {
			s.fail(c, err)
			return
		}
	}
	c.Set(reservationKey, r)
}

func found(c *gin.Context) reservation.Reservation {
	return c.MustGet(reservationKey).(reservation.Reservation)
}
