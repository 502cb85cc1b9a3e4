package keystone

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// How long Keystone is left alone after it refused the service user's password:
// attempt after attempt would lock the account ([security_compliance]
// lockout_failure_attempts in Keystone).
const (
	firstPause   = 30 * time.Second
	longestPause = 5 * time.Minute
)

// renewal is how long before its end the service user's token is replaced.
const renewal = time.Minute

// Session is the service user's login, made when it is first needed and again when
// its token ends. It is safe for concurrent use: those who need a login at the same
// time share one. It is the openstack.Session of the clients of Nova and Placement.
type Session struct {
	connection Connection
	now        func() time.Time
	log        *slog.Logger

	turn    chan struct{} // holds one while somebody uses the fields below
	client  *gophercloud.ServiceClient
	expires time.Time
	refused error // of the last login, where Keystone refused it
	pause   time.Duration
	until   time.Time // no login before
}

// NewSession gives a session, which asks Keystone nothing yet. It fails with an
// Invalid fault where the connection cannot work.
func NewSession(c Connection, now func() time.Time, log *slog.Logger) (*Session, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if _, err := c.client(); err != nil {
		return nil, err
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	return &Session{connection: c, now: now, log: log, turn: make(chan struct{}, 1)}, nil
}

// use gives a client that is logged in. stale is a token that Keystone did not
// accept any more; where it is the session's own, the session logs in anew.
func (s *Session) use(ctx context.Context, stale string) (*gophercloud.ServiceClient, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.client != nil && s.client.Token() != stale && s.now().Before(s.expires.Add(-renewal)) {
		return s.client, nil
	}
	if wait := s.until.Sub(s.now()); wait > 0 {
		return nil, &fault.Error{Kind: fault.Unavailable, Message: unavailable, RetryAfter: wait, Err: s.refused}
	}
	client, expires, err := s.connection.open(ctx)
	switch {
	case err == nil:
		s.client, s.expires, s.refused, s.pause = client, expires, nil, 0
	case ctx.Err() != nil:
		err = ctx.Err() // err may hold the cause of that, such as the answer of another service
	case isRefusal(err):
		s.refuse(err)
	}
	return client, err
}

// refuse notes that Keystone refused the login; the first time, it says so.
func (s *Session) refuse(err error) {
	s.client = nil
	if s.refused == nil {
		s.log.Error("keystone refuses the service user; check auth_url, username, password, project_name and the domains, "+
			"or the application credential, in [keystone_authtoken]", "user", s.connection.name(), "error", err)
	}
	s.refused = err
	s.pause = min(max(2*s.pause, firstPause), longestPause)
	s.until = s.now().Add(s.pause)
}

// isRefusal says whether Keystone understood a login and declined it; 404 is a
// deleted application credential.
func isRefusal(err error) bool {
	answer, ok := errors.AsType[*openstack.Answer](err)
	return ok && slices.Contains([]int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
	}, answer.Status)
}

// name says who logs in, for messages.
func (c Connection) name() string {
	for _, name := range []string{c.ApplicationCredentialID, c.ApplicationCredentialName, c.Username, c.UserID} {
		if name != "" {
			return name
		}
	}
	return "unnamed"
}

// open logs in.
func (c Connection) open(ctx context.Context) (*gophercloud.ServiceClient, time.Time, error) {
	client, err := c.client()
	if err != nil {
		return nil, time.Time{}, err
	}
	result := tokens.Create(ctx, client, c.granted())
	if result.Err != nil {
		return nil, time.Time{}, told(result.Err)
	}
	token, err := result.ExtractToken()
	if err == nil && token.ID == "" {
		err = errNoToken
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	catalog, err := result.ExtractServiceCatalog()
	if err != nil {
		return nil, time.Time{}, err
	}
	endpoint, err := c.endpoint(catalog)
	if err != nil {
		return nil, time.Time{}, err
	}
	if endpoint != "" {
		client.Endpoint = endpoint
	}
	return client, token.ExpiresAt, client.SetTokenAndAuthResult(result)
}
