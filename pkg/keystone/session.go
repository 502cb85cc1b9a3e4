// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Pauses between logins after Keystone refused the service user's password: more attempts
// would lock the account ([security_compliance] lockout_failure_attempts in Keystone).
const (
	firstPause   = 30 * time.Second
	longestPause = 5 * time.Minute
)

// Session holds the service user's token. It logs in when a token is first needed and again
// before the token expires. It is safe for concurrent use. It implements openstack.Session
// for the clients of Nova and Placement.
type Session struct {
	connection Connection
	now        func() time.Time
	log        *slog.Logger
	holder     *holder

	// The fields below are used during a login.
	refused error // of the last login, if Keystone refused it
	pause   time.Duration
	until   time.Time // no login before
}

// NewSession returns a session, without a request to Keystone. It fails with an Invalid
// fault if the connection cannot work.
func NewSession(c Connection, now func() time.Time, log *slog.Logger) (*Session, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if _, err := c.client(); err != nil {
		return nil, err
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	s := &Session{connection: c, now: now, log: log}
	s.holder = newHolder(now, s.logIn)
	return s, nil
}

// logIn is a login of the holder. While Keystone refuses the service user, it waits for the
// pause before the next request.
func (s *Session) logIn(ctx context.Context) (grant, error) {
	if wait := s.until.Sub(s.now()); wait > 0 {
		return grant{}, &fault.Error{Kind: fault.Unavailable, Message: unavailable, RetryAfter: wait, Err: s.refused}
	}
	g, err := s.connection.open(ctx)
	if cut(err) && ctx.Err() == nil {
		g, err = s.connection.open(ctx)
	}
	switch {
	case err == nil:
		s.refused, s.pause = nil, 0
	case ctx.Err() != nil:
		err = ctx.Err() // err may wrap the cause of the cancellation, such as another service's response
	case isRefusal(err):
		s.refuse(err)
	}
	return g, err
}

// cut reports whether a connection ended before the whole answer had come, as when a proxy is reloaded. A
// login changes nothing, so it can be repeated.
func cut(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// refuse records that Keystone refused the login, and logs it the first time.
func (s *Session) refuse(err error) {
	if s.refused == nil {
		s.log.Error("keystone refuses the service user; check auth_url, username, password, project_name and the domains, "+
			"or the application credential, in [keystone_authtoken]", "user", s.connection.name(), "error", err)
	}
	s.refused = err
	s.pause = min(max(2*s.pause, firstPause), longestPause)
	s.until = s.now().Add(s.pause)
}

// isRefusal reports whether Keystone understood a login and refused it. 404 is the response
// to a deleted application credential.
func isRefusal(err error) bool {
	answer, ok := errors.AsType[*openstack.Answer](err)
	return ok && slices.Contains([]int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
	}, answer.Status)
}

// obstacle returns a sentence why Keystone issues no token for credentials that are right; "" if they
// are not, or if Keystone does not say.
func obstacle(err error) string {
	answer, ok := errors.AsType[*openstack.Answer](err)
	switch {
	case !ok || answer.Status != http.StatusUnauthorized:
		return ""
	case len(answer.Methods) > 0:
		choices := make([]string, len(answer.Methods))
		for i, methods := range answer.Methods {
			choices[i] = strings.Join(methods, " and ")
		}
		return "Keystone requires several methods of authentication (" + strings.Join(choices, ", or ") + ") of this user; use a token, which openstack token issue prints"
	case strings.Contains(answer.Message, "password is expired"): // keystone/exception.py, PasswordExpired
		return "the password has expired; change it with openstack user password set, and try again"
	}
	return ""
}

// name returns the name of the user or application credential for messages.
func (c Connection) name() string {
	return cmp.Or(c.ApplicationCredentialID, c.ApplicationCredentialName, c.Username, c.UserID, "unnamed")
}

// open logs in.
func (c Connection) open(ctx context.Context) (grant, error) {
	client, err := c.client()
	if err != nil {
		return grant{}, err
	}
	g, err := logIn(ctx, client, c.granted())
	if err != nil {
		return grant{}, err
	}
	endpoint, err := c.endpoint(g.catalog)
	if err != nil {
		return grant{}, err
	}
	client.Endpoint = cmp.Or(endpoint, client.Endpoint)
	g.client = client
	return g, client.SetTokenAndAuthResult(g.result)
}
