// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"golang.org/x/sync/singleflight"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Options configure a Validator.
type Options struct {
	// Connection has the credentials of the service user.
	Connection
	// TokenCacheTime is how long the validation of a token is cached; 0 or less: not at all.
	TokenCacheTime time.Duration
	// CacheSize is the number of cached valid tokens, and that of rejected ones; 0:
	// DefaultCacheSize.
	CacheSize int
	// A service token must have one of ServiceTokenRoles.
	ServiceTokenRoles []string
	// ServiceTokenRolesRequired refuses a request whose service token has none of them.
	// Otherwise such a token is ignored.
	ServiceTokenRolesRequired bool
	// ServiceType is our type in the catalog, for access rules.
	ServiceType string
	Now         func() time.Time
	Log         *slog.Logger
}

// DefaultCacheSize takes some megabytes.
const DefaultCacheSize = 10_000

const (
	// rejectedTime is how long the rejection of a token is cached.
	rejectedTime = 10 * time.Second
	// longestToken is longer than any token format of Keystone and shorter than the headers
	// that servers accept.
	longestToken = 8 << 10
)

// Validator validates tokens. It is safe for concurrent use.
type Validator struct {
	options Options
	session *Session
	cache   *cache
	flights singleflight.Group
}

// question identifies a token by its hash, so that the cache holds no tokens.
type question struct {
	hash         [sha256.Size]byte
	allowExpired bool
}

// verdict is Keystone's response about a token and the end of its validity.
type verdict struct {
	token Token
	err   error
	until time.Time
}

// New returns a validator, without a request to Keystone. It fails with an Invalid fault if
// the options cannot work.
func New(o Options) (*Validator, error) {
	session, err := NewSession(o.Connection, o.Now, o.Log)
	if err != nil {
		return nil, err
	}
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	cache, err := newCache(cmp.Or(o.CacheSize, DefaultCacheSize))
	if err != nil {
		return nil, err
	}
	return &Validator{options: o, session: session, cache: cache}, nil
}

// Authenticate validates the tokens of a request (X-Auth-Token, X-Service-Token) and checks
// the access rules of the token's application credential.
func (v *Validator) Authenticate(r *http.Request) (Token, error) {
	token, serviceToken := tokensOf(r)
	found, err := v.Validate(r.Context(), token, serviceToken)
	if err == nil {
		err = found.Permits(v.options.ServiceType, r.Method, r.URL.Path)
	}
	return found, err
}

// Knows reports whether Authenticate needs no request to Keystone: the verdicts on the
// request's tokens are cached, or they cannot be tokens.
func (v *Validator) Knows(r *http.Request) bool {
	token, serviceToken := tokensOf(r)
	if token == "" {
		return true
	}
	fromService := false
	if serviceToken != "" {
		service, known := v.known(serviceToken, false)
		if !known || service.err != nil {
			return known
		}
		fromService = v.isService(service.token)
	}
	_, known := v.known(token, fromService)
	return known
}

// tokensOf returns the tokens of a request: that of the user and that of a service that
// forwards the request. Either may be empty.
func tokensOf(r *http.Request) (token, serviceToken string) {
	return textproto.TrimString(r.Header.Get("X-Auth-Token")), textproto.TrimString(r.Header.Get("X-Service-Token"))
}

// Check returns an error if Keystone does not respond or does not accept Almanac's login.
func (v *Validator) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, v.options.Timeout)
	defer cancel()
	g, err := v.session.holder.get(ctx, "")
	if err != nil {
		return err
	}
	_, err = v.look(ctx, g.token, false)
	return err
}

// Validate returns the description of a token. serviceToken, which may be empty, is the token
// of a service that forwards a user's request: with a service role it allows the user's token
// to be expired (keystonemiddleware, BaseAuthProtocol.process_request). The caller must call
// Permits before it acts on the token.
//
// It fails with an Unauthorized fault for a token that Keystone rejects, and with an
// Unavailable fault, after a bounded wait, if Keystone does not respond.
func (v *Validator) Validate(ctx context.Context, token, serviceToken string) (Token, error) {
	ctx, cancel := context.WithTimeout(ctx, v.options.Timeout)
	defer cancel()
	token, serviceToken = textproto.TrimString(token), textproto.TrimString(serviceToken)
	if token == "" {
		return Token{}, fault.New(fault.Unauthorized, "there is no token; get one from Keystone and send it as X-Auth-Token")
	}
	var service Token
	fromService := false
	if serviceToken != "" {
		var err error
		if service, err = v.ask(ctx, serviceToken, false); err != nil {
			return Token{}, aboutServiceToken(err)
		}
		fromService = v.isService(service)
		if v.options.ServiceTokenRolesRequired && !fromService {
			return Token{}, fault.New(fault.Unauthorized, "the token in X-Service-Token has none of the roles %s",
				strings.Join(v.options.ServiceTokenRoles, ", "))
		}
	}
	found, err := v.ask(ctx, token, fromService)
	if err != nil {
		return Token{}, err
	}
	found.ServiceRoles, found.chained = slices.Clone(service.Roles), fromService
	return found, nil
}

// isService reports whether a service token allows the user's token to be expired.
func (v *Validator) isService(service Token) bool {
	return slices.ContainsFunc(service.Roles, func(role string) bool { return slices.Contains(v.options.ServiceTokenRoles, role) })
}

// aboutServiceToken names X-Service-Token in the error that its token is not valid.
func aboutServiceToken(err error) error {
	if fault.Is(err, fault.Unauthorized) {
		return fault.New(fault.Unauthorized, "the token in X-Service-Token is not valid; the service that sends it must get a new one")
	}
	return err
}

// ask returns the verdict on one token, from the cache or from Keystone. Concurrent calls
// about the same token share one request.
func (v *Validator) ask(ctx context.Context, token string, allowExpired bool) (Token, error) {
	if known, ok := v.known(token, allowExpired); ok {
		return known.token.copied(), known.err
	}
	q := questionOf(token, allowExpired)
	key := string(q.hash[:])
	if allowExpired {
		key += "expired too"
	}
	flight := v.flights.DoChan(key, func() (any, error) {
		// The first caller may cancel while others wait for the verdict.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.options.Timeout)
		defer cancel()
		return v.fetch(ctx, token, q)
	})
	select {
	case answer := <-flight:
		if answer.Err != nil {
			return Token{}, answer.Err
		}
		return answer.Val.(Token).copied(), nil
	case <-ctx.Done():
		return Token{}, away(ctx.Err())
	}
}

// known returns the verdict on a token without a request to Keystone; ok is false if it needs
// one.
func (v *Validator) known(token string, allowExpired bool) (known verdict, ok bool) {
	if len(token) > longestToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return verdict{err: rejected()}, true
	}
	return v.cache.get(questionOf(token, allowExpired), v.options.Now())
}

func questionOf(token string, allowExpired bool) question {
	return question{hash: sha256.Sum256([]byte(token)), allowExpired: allowExpired}
}

func (t Token) copied() Token {
	t.Roles = slices.Clone(t.Roles)
	return t
}

func rejected() error {
	return fault.New(fault.Unauthorized, "your token is invalid or has expired; get a new one from Keystone")
}

// fetch requests the verdict from Keystone and caches it.
func (v *Validator) fetch(ctx context.Context, token string, q question) (Token, error) {
	found, err := v.look(ctx, token, q.allowExpired)
	now := v.options.Now()
	switch {
	case openstack.Status(err) == http.StatusNotFound, err == nil && !q.allowExpired && !now.Before(found.Expires):
		err = rejected()
		v.remember(q, verdict{err: err, until: now.Add(min(rejectedTime, v.options.TokenCacheTime))})
		return Token{}, err
	case err != nil:
		return Token{}, away(err)
	}
	until := now.Add(v.options.TokenCacheTime)
	if found.Expires.Before(until) {
		until = found.Expires
	}
	v.remember(q, verdict{token: found, until: until})
	return found, nil
}

func (v *Validator) remember(q question, answer verdict) {
	if answer.until.After(v.options.Now()) {
		v.cache.add(q, answer)
	}
}

// look requests the verdict from Keystone, and again with a new token of the service user if
// Keystone refused the old one, which may have been revoked.
func (v *Validator) look(ctx context.Context, token string, allowExpired bool) (Token, error) {
	g, err := v.session.holder.get(ctx, "")
	if err != nil {
		return Token{}, err
	}
	found, err := get(ctx, g.client, token, allowExpired)
	if openstack.Status(err) != http.StatusUnauthorized {
		return found, err
	}
	if g, err = v.session.holder.get(ctx, g.token); err != nil {
		return Token{}, err
	}
	return get(ctx, g.client, token, allowExpired)
}

// get is GET /v3/auth/tokens. The header declares support for access rules; without it,
// Keystone does not return tokens that have them.
func get(ctx context.Context, client *gophercloud.ServiceClient, token string, allowExpired bool) (Token, error) {
	url := client.ServiceURL("auth", "tokens") + "?nocatalog"
	if allowExpired {
		url += "&allow_expired=1"
	}
	var body document
	response, err := client.Get(ctx, url, &body, &gophercloud.RequestOpts{
		MoreHeaders: map[string]string{"X-Subject-Token": token, "OpenStack-Identity-Access-Rules": "1"},
	})
	if err != nil {
		return Token{}, told(err)
	}
	response.Body.Close()
	if body.Token.User.ID == "" || body.Token.Expires.IsZero() {
		return Token{}, errors.New("keystone's response has no user or no expiry of the token; check that auth_url in [keystone_authtoken] is the address of Keystone")
	}
	return body.token(), nil
}
