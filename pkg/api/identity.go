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

// Authenticator says who sent a request. It fails with an Unauthorized or a Denied
// fault, or with an Unavailable one where it cannot find out.
type Authenticator interface {
	Authenticate(r *http.Request) (policy.Credentials, error)
	// Knows reports whether Authenticate would answer without asking anybody else.
	Knows(r *http.Request) bool
}

// Fixed is an Authenticator for which everybody on this machine is the same caller.
type Fixed policy.Credentials

// Authenticate implements Authenticator. A request that is addressed to another
// name than this machine's own is denied: a page of another site reaches the
// loopback address under its own name, once its name server says so.
func (f Fixed) Authenticate(r *http.Request) (policy.Credentials, error) {
	name := r.Host
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		name = host
	}
	if ip := net.ParseIP(strings.Trim(name, "[]")); name != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return policy.Credentials{}, fault.New(fault.Denied, "there are no passwords here, so only requests to localhost are answered, not to %q", name)
	}
	who := policy.Credentials(f)
	who.IsAdminProject = true // without Keystone there is no other one
	return who, nil
}

// Knows implements Authenticator.
func (Fixed) Knows(*http.Request) bool { return true }

// Validator finds out who the tokens of a request (X-Auth-Token, X-Service-Token)
// belong to, as a *keystone.Validator does.
type Validator interface {
	Authenticate(r *http.Request) (keystone.Token, error)
	Knows(r *http.Request) bool
}

// Keystone is an Authenticator that believes tokens.
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

// CredentialsOf gives what the rules ask for of a token's owner.
func CredentialsOf(t keystone.Token) policy.Credentials {
	return policy.Credentials{
		UserID: t.UserID, UserDomainID: t.UserDomainID, ProjectID: t.ProjectID, ProjectDomainID: t.ProjectDomainID,
		DomainID: t.DomainID, System: t.System, IsAdminProject: t.IsAdminProject, Roles: t.Roles,
	}
}

// Enforcer decides by rules, as a *policy.Enforcer does. It fails with a Denied
// fault that names the rule.
type Enforcer interface {
	Check(rule string, by policy.Credentials, target map[string]string) error
}

// asker is who sent a request, and what the rules let them do. It belongs to one
// request and is not safe for concurrent use.
type asker struct {
	policy.Credentials
	requestID string
	rules     Enforcer
	decided   map[decision]error
}

// decision is the question whether a rule allows something that belongs to a
// project, or to none.
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

// caller is the asker as the desk knows them, for what is their own.
func (a *asker) caller() booking.Caller {
	return booking.Caller{ProjectID: a.ProjectID, UserID: a.UserID, RequestID: a.requestID, SeesHidden: a.seesHidden()}
}

// callerFor is the asker as the desk knows them, for a reservation that find has
// let through.
func (a *asker) callerFor(r *reservation.Reservation) booking.Caller {
	by := a.caller()
	by.Admin = r.ProjectID != a.ProjectID
	return by
}

const askerKey = "asker"

// authenticate finds out who is asking, and for which project: without one every
// project's reservations would be the caller's.
func (s *server) authenticate(c *gin.Context) {
	from, unknown := s.senderOf(c), !s.Authenticator.Knows(c.Request)
	if unknown {
		if wait := s.takeFailure(from); wait > 0 {
			s.limited(c, wait, "too many requests from your address came with a wrong token")
			return
		}
	}
	who, err := s.Authenticator.Authenticate(c.Request)
	if unknown && !fault.Is(err, fault.Unauthorized) {
		s.forgive(from)
	}
	if err == nil && who.ProjectID == "" && !who.System {
		err = fault.New(fault.Denied, "your token is for no project; get one for the project that the reservations belong to")
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

func asking(c *gin.Context) *asker { return c.MustGet(askerKey).(*asker) }

// require lets those through whom the rule allows to act on what is their own
// project's, or nobody's.
func (s *server) require(rule string) gin.HandlerFunc {
	return func(c *gin.Context) {
		by := asking(c)
		if err := by.check(rule, by.ProjectID); err != nil {
			s.fail(c, err)
		}
	}
}

// forProject is for calls that need a project.
func (s *server) forProject(c *gin.Context) {
	if asking(c).ProjectID == "" {
		s.fail(c, fault.New(fault.Denied, "your token is for the system; get one for the project that this belongs to"))
	}
}

// pathID returns the id in the path; a UUID may be written in any case.
func pathID(c *gin.Context) string { return placing.LowerUUID(c.Param("id")) }

const reservationKey = "reservation"

// find looks the reservation of the path up. The rule says who may act on one of
// their own project, and the rule with the ending _all_projects who may on that of
// another: for the others it does not exist.
func (s *server) find(rule string) gin.HandlerFunc {
	return func(c *gin.Context) {
		by, id := asking(c), pathID(c)
		r, err := s.Reader.Get(c.Request.Context(), id)
		if err == nil && r.ProjectID != by.ProjectID {
			if by.may(rule+"_all_projects", r.ProjectID) {
				c.Set(reservationKey, r)
				return
			}
			err = booking.NotFound(id)
		}
		// Who may not even act on their own does not learn what exists.
		if denied := by.check(rule, by.ProjectID); denied != nil {
			err = denied
		}
		if err != nil {
			s.fail(c, err)
			return
		}
		c.Set(reservationKey, r)
	}
}

func found(c *gin.Context) reservation.Reservation {
	return c.MustGet(reservationKey).(reservation.Reservation)
}
