// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	clients "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/almanac-cloud/almanac/pkg/tracing"
)

// renewal is how long before its expiry a token is replaced.
const renewal = time.Minute

var errNoToken = errors.New("keystone returned no token")

// grant is the result of a login.
type grant struct {
	token   string
	expires time.Time
	catalog []tokens.CatalogEntry
	result  tokens.CreateResult
	client  *gophercloud.ServiceClient // sends the token; nil for a Login
}

// logIn requests a token.
func logIn(ctx context.Context, client *gophercloud.ServiceClient, auth tokens.AuthOptionsBuilder) (grant, error) {
	result := tokens.Create(ctx, client, auth)
	token, err := result.ExtractToken()
	if err == nil && token.ID == "" {
		err = errNoToken
	}
	if err != nil {
		return grant{}, told(err)
	}
	catalog, err := result.ExtractServiceCatalog()
	if err != nil {
		return grant{}, err
	}
	return grant{token: token.ID, expires: token.ExpiresAt, catalog: catalog.Entries, result: result}, nil
}

// holder holds one user's token. Callers that need a new one at the same time share a login.
type holder struct {
	now   func() time.Time
	logIn func(ctx context.Context) (grant, error)

	turn chan struct{} // holds one value while a caller uses held
	held grant
}

func newHolder(now func() time.Time, logIn func(ctx context.Context) (grant, error)) *holder {
	return &holder{now: now, logIn: logIn, turn: make(chan struct{}, 1)}
}

// get returns the held grant. It logs in if there is none, if the token expires soon, or if
// the token is stale: a token that Keystone or a service refused.
func (h *holder) get(ctx context.Context, stale string) (grant, error) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return grant{}, ctx.Err()
	}
	if g := h.held; g.token != "" && g.token != stale && h.now().Before(g.expires.Add(-renewal)) {
		return g, nil
	}
	g, err := h.logIn(ctx)
	if err == nil || isRefusal(err) {
		h.held = g
	}
	return g, err
}

// newClient returns a client of the Keystone at an address, without a token. timeout bounds
// each request; 0 means no limit.
func newClient(address string, trust *tls.Config, timeout time.Duration) (*gophercloud.ServiceClient, error) {
	provider, err := clients.NewClient(address)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 16
	transport.TLSClientConfig = trust
	provider.HTTPClient = http.Client{
		Timeout: timeout, Transport: tracing.Transport("keystone", transport),
		// A redirect would send passwords and tokens to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	provider.UserAgent.Prepend("almanac")
	return clients.NewIdentityV3(provider, gophercloud.EndpointOpts{})
}
