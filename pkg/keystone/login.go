package keystone

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	clients "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Login is a user's stay with Keystone: it logs in when that is first needed, and
// again before the token ends. It is safe for concurrent use.
type Login struct {
	user   User
	now    func() time.Time
	client *gophercloud.ServiceClient // not logged in

	mu    sync.Mutex
	grant grant
}

// grant is what a login gave.
type grant struct {
	token   string
	expires time.Time
	catalog []tokens.CatalogEntry
}

// NewLogin gives the user a login, which asks Keystone nothing yet. timeout bounds
// each of its questions; 0 is without end.
func NewLogin(u User, timeout time.Duration, now func() time.Time) (*Login, error) {
	address, err := url.Parse(u.auth.IdentityEndpoint)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return nil, fault.New(fault.Invalid, "the address of Keystone in %s must be such as https://keystone.example.org:5000/v3, and is %q",
			u.source, u.auth.IdentityEndpoint)
	}
	provider, err := clients.NewClient(u.auth.IdentityEndpoint)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = u.tls
	provider.HTTPClient = http.Client{
		Timeout: timeout, Transport: transport,
		// A redirect would hand the password to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	provider.UserAgent.Prepend("almanac")
	client, err := clients.NewIdentityV3(provider, gophercloud.EndpointOpts{})
	if err != nil {
		return nil, err
	}
	return &Login{user: u, now: now, client: client}, nil
}

// TLS says whose certificates the user believes.
func (l *Login) TLS() *tls.Config { return l.user.tls.Clone() }

// Token gives a token that is good for a minute at least, if Keystone gives such
// ones. It fails with an
// Unauthorized fault where Keystone refuses the user, and with an Unavailable one
// where it gives no answer that can be used.
func (l *Login) Token(ctx context.Context) (string, error) {
	g, err := l.renewed(ctx, "")
	return g.token, err
}

// Endpoint gives the address of a type of service from the catalog, for the user's
// region and interface. It fails as Token does, with an Unavailable fault where there
// is none, and with an Invalid one where it is in several regions and the user names
// none of them.
func (l *Login) Endpoint(ctx context.Context, serviceType string) (string, error) {
	g, err := l.renewed(ctx, "")
	if err != nil {
		return "", err
	}
	found, elsewhere := endpointsOf(g.catalog, serviceType, l.user.region, string(l.user.availability))
	if len(found) == 0 {
		return "", l.noEndpoint(serviceType, g.catalog, elsewhere)
	}
	if regions := regionsOf(found); len(regions) > 1 {
		return "", fault.Field("OS_REGION_NAME", "the catalog has service %s in the regions %s; say which is meant",
			serviceType, strings.Join(regions, ", "))
	}
	return found[0].URL, nil
}

func (l *Login) noEndpoint(serviceType string, catalog []tokens.CatalogEntry, elsewhere []string) error {
	if len(catalog) == 0 {
		return fault.New(fault.Unavailable, "Keystone gave %s a token without a catalog; say for which project it is to be", l.user.name())
	}
	where := ""
	if l.user.region != "" {
		where = " of region " + l.user.region
	}
	if len(elsewhere) > 0 {
		return fault.New(fault.Unavailable, "the catalog%s has no %s endpoint of service %s; there is %s",
			where, l.user.availability, serviceType, strings.Join(elsewhere, ", "))
	}
	return fault.New(fault.Unavailable, "there is no service %s in the catalog%s; your operator registers it with almanacd bootstrap keystone",
		serviceType, where)
}

// renewed gives what the last login gave, or logs in anew where the token ends soon
// or is the one that is stale.
func (l *Login) renewed(ctx context.Context, stale string) (grant, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.grant; g.token != "" && g.token != stale && l.now().Before(g.expires.Add(-renewal)) {
		return g, nil
	}
	auth := l.user.auth
	result := tokens.Create(ctx, l.client, &auth)
	token, err := result.ExtractToken()
	if err == nil && token.ID == "" {
		err = errNoToken
	}
	if err != nil {
		return grant{}, l.explain(err)
	}
	catalog, err := result.ExtractServiceCatalog()
	if err != nil {
		return grant{}, l.explain(err)
	}
	l.grant = grant{token: token.ID, expires: token.ExpiresAt, catalog: catalog.Entries}
	return l.grant, nil
}

// explain says why there is no token.
func (l *Login) explain(err error) error {
	err = told(err)
	if errors.Is(err, context.Canceled) {
		return err
	}
	f := fault.New(fault.Unavailable, "there is no token from Keystone at %s", l.user.auth.IdentityEndpoint)
	// To a token or an application credential that it does not know Keystone says 404.
	gone := l.user.auth.Password == "" && openstack.Status(err) == http.StatusNotFound
	if isRefusal(err) || gone {
		f = fault.New(fault.Unauthorized, "Keystone at %s refuses %s; check %s", l.user.auth.IdentityEndpoint, l.user.name(), l.user.source)
	}
	f.Err = err
	return f
}

// Renewing gives a transport over next that, where the token of a request is refused,
// gets a new one and sends the request again, once.
func (l *Login) Renewing(next http.RoundTripper) http.RoundTripper {
	return renewing{login: l, next: next}
}

type renewing struct {
	login *Login
	next  http.RoundTripper
}

func (r renewing) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := r.next.RoundTrip(req)
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return answer, err
	}
	g, err := r.login.renewed(req.Context(), req.Header.Get("X-Auth-Token"))
	if err != nil { // then the refusal is what there is to say
		return answer, nil
	}
	answer.Body.Close()
	return openstack.Resend(r.next, req, g.token)
}
