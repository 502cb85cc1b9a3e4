// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Login holds the token of a user of the command line. It logs in when a token is first
// needed and again before the token expires. It is safe for concurrent use.
type Login struct {
	user   User
	client *gophercloud.ServiceClient // without a token
	holder *holder
}

// NewLogin returns the login of the user, without a request to Keystone. timeout bounds each
// request; 0 means no limit.
func NewLogin(u User, timeout time.Duration, now func() time.Time) (*Login, error) {
	address, err := url.Parse(u.auth.IdentityEndpoint)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return nil, fault.New(fault.Invalid, "the address of Keystone in %s must be such as https://keystone.example.org:5000/v3, and is %q",
			u.source, u.auth.IdentityEndpoint)
	}
	client, err := newClient(u.auth.IdentityEndpoint, u.tls, timeout)
	if err != nil {
		return nil, err
	}
	l := &Login{user: u, client: client}
	l.holder = newHolder(now, l.logIn)
	return l, nil
}

// TLS returns which server certificates the user trusts.
func (l *Login) TLS() *tls.Config { return l.user.tls.Clone() }

// Token returns a token that is valid for at least a minute, if Keystone issues such tokens.
// It fails with an Unauthorized fault if Keystone refuses the user, and with an Unavailable
// fault if Keystone does not send a usable response.
func (l *Login) Token(ctx context.Context) (string, error) {
	g, err := l.holder.get(ctx, "")
	return g.token, err
}

// Endpoint returns the address of a type of service from the catalog, for the user's region
// and interface. It fails as Token does, with an Unavailable fault if there is no endpoint,
// and with an Invalid fault if the service is in several regions and the user chose none.
func (l *Login) Endpoint(ctx context.Context, serviceType string) (string, error) {
	g, err := l.holder.get(ctx, "")
	if err != nil {
		return "", err
	}
	if len(g.catalog) == 0 {
		return "", fault.New(fault.Unavailable, "the token of %s from Keystone has no catalog; choose for which project you log in", l.user.name())
	}
	address, err := choose(g.catalog, serviceType, l.user.region, []string{string(l.user.availability)}, "OS_REGION_NAME")
	if errors.Is(err, ErrNoService) {
		return "", fault.New(fault.Unavailable, "%s; your operator registers it with almanacd bootstrap keystone", fault.Of(err).Message)
	}
	return address, err
}

// logIn gets a token from Keystone for the user of the login.
func (l *Login) logIn(ctx context.Context) (grant, error) {
	auth := l.user.auth
	g, err := logIn(ctx, l.client, &auth)
	if err != nil {
		return grant{}, l.explain(err)
	}
	return g, nil
}

// explain returns the error for the user of a login that failed.
func (l *Login) explain(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	f := fault.New(fault.Unavailable, "there is no token from Keystone at %s", l.user.auth.IdentityEndpoint)
	// Keystone responds 404 to an unknown token or application credential.
	gone := l.user.auth.Password == "" && openstack.Status(err) == http.StatusNotFound
	if isRefusal(err) || gone {
		f = fault.New(fault.Unauthorized, "Keystone at %s refuses %s; check %s", l.user.auth.IdentityEndpoint, l.user.name(), l.user.source)
	}
	if why := obstacle(err); why != "" {
		f = fault.New(fault.Unauthorized, "Keystone at %s refuses %s: %s", l.user.auth.IdentityEndpoint, l.user.name(), why)
	}
	f.Err = err
	return f
}

// Renewing returns a transport over next that logs in again and sends a request once more if
// a service refuses its token.
func (l *Login) Renewing(next http.RoundTripper) http.RoundTripper {
	return renewing{login: l, next: next}
}

type renewing struct {
	login *Login
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper. After a 401 it gets a new token and sends the request once
// more.
func (r renewing) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := r.next.RoundTrip(req)
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return answer, err
	}
	g, err := r.login.holder.get(req.Context(), req.Header.Get("X-Auth-Token"))
	if err != nil { // the response 401 is then the answer
		return answer, nil
	}
	answer.Body.Close()
	return openstack.Resend(r.next, req, g.token)
}
