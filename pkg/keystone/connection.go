// Package keystone asks Keystone who a token belongs to, registers Almanac there, and
// logs it in where it calls other services. It follows keystonemiddleware's auth_token where it does the same, and
// names its options as section [keystone_authtoken] does.
package keystone

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	clients "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Connection says where Keystone is and who logs in there: a user with a password,
// or an application credential, which is one where its secret is set.
type Connection struct {
	AuthURL string // with or without /v3

	Username, UserID, Password         string
	UserDomainID, UserDomainName       string
	ProjectID, ProjectName             string
	ProjectDomainID, ProjectDomainName string
	ApplicationCredentialID            string
	ApplicationCredentialName          string // with Username or UserID
	ApplicationCredentialSecret        string
	Region                             string
	Interface                          string // internal, public or admin, from the catalog; empty: AuthURL itself
	CAFile                             string // PEM; empty: the system's
	Insecure                           bool   // do not verify Keystone's certificate
	Timeout                            time.Duration

	// trust is the trust of another user, in whose name the login is; empty is none.
	trust string
}

// DefaultTimeout bounds a question to Keystone, with everything it takes to get
// the answer, where Connection.Timeout is 0.
const DefaultTimeout = 10 * time.Second

// Check says what is missing.
func (c Connection) Check() error {
	address, err := url.Parse(c.AuthURL)
	if c.AuthURL == "" || err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return option("auth_url", "must be the address of Keystone, such as https://keystone.example.org:5000/v3")
	}
	if c.Interface != "" && c.Interface != "internal" && c.Interface != "public" && c.Interface != "admin" {
		return option("interface", "must be internal, public or admin")
	}
	user := c.Username != "" || c.UserID != ""
	if c.ApplicationCredentialSecret != "" {
		if c.ApplicationCredentialID == "" && (c.ApplicationCredentialName == "" || !user) {
			return option("application_credential_id", "is needed beside application_credential_secret")
		}
		return nil
	}
	if !user || c.Password == "" {
		return option("username", "and password are needed, or application_credential_id and application_credential_secret")
	}
	if c.ProjectID == "" && c.ProjectName == "" {
		return option("project_name", "is needed, mostly service: the project that the user logs in to")
	}
	return nil
}

// option is a fault about an option of [keystone_authtoken].
func option(name, format string, args ...any) *fault.Error {
	return fault.Field("[keystone_authtoken] "+name, format, args...)
}

// login gives what is sent to log in.
func (c Connection) login() *tokens.AuthOptions {
	o := &tokens.AuthOptions{Username: c.Username, UserID: c.UserID}
	if c.UserID != "" {
		o.Username = ""
	} else if o.DomainID = c.UserDomainID; o.DomainID == "" {
		if o.DomainName = c.UserDomainName; o.DomainName == "" {
			o.DomainID = "default"
		}
	}
	if c.ApplicationCredentialSecret != "" {
		o.ApplicationCredentialSecret = c.ApplicationCredentialSecret
		if o.ApplicationCredentialID = c.ApplicationCredentialID; o.ApplicationCredentialID == "" {
			o.ApplicationCredentialName = c.ApplicationCredentialName
		} else {
			o.Username, o.UserID, o.DomainID, o.DomainName = "", "", "", ""
		}
		return o
	}
	o.Password = c.Password
	if o.Scope.ProjectID = c.ProjectID; c.ProjectID == "" {
		o.Scope.ProjectName = c.ProjectName
		if o.Scope.DomainID = c.ProjectDomainID; c.ProjectDomainID == "" {
			if o.Scope.DomainName = c.ProjectDomainName; c.ProjectDomainName == "" {
				o.Scope.DomainID = "default"
			}
		}
	}
	return o
}

// client gives an identity client that has not logged in.
func (c Connection) client() (*gophercloud.ServiceClient, error) {
	transport, err := c.transport()
	if err != nil {
		return nil, err
	}
	provider, err := clients.NewClient(c.AuthURL)
	if err != nil {
		return nil, option("auth_url", "%v", err)
	}
	provider.HTTPClient = http.Client{
		Transport: transport,
		// A redirect would hand the tokens, which travel in headers, to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	provider.UserAgent.Prepend("almanac")
	return clients.NewIdentityV3(provider, gophercloud.EndpointOpts{})
}

func (c Connection) transport() (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 16
	trust, err := openstack.Trust(c.CAFile, c.Insecure)
	if err != nil {
		return nil, option("cafile", "%v", err)
	}
	transport.TLSClientConfig = trust
	return transport, nil
}

// endpoint gives the address of Keystone from the catalog that came with a login,
// or "" where AuthURL is to be used.
func (c Connection) endpoint(catalog *tokens.ServiceCatalog) (string, error) {
	if c.Interface == "" {
		return "", nil
	}
	for _, service := range catalog.Entries {
		for _, e := range service.Endpoints {
			if service.Type == "identity" && e.Interface == c.Interface && (c.Region == "" || c.Region == e.RegionID) {
				return strings.TrimSuffix(strings.TrimRight(e.URL, "/"), "/v3") + "/v3/", nil
			}
		}
	}
	return "", option("interface", "the catalog has no %s endpoint of Keystone in region %q; correct interface or region_name", c.Interface, c.Region)
}

var errNoToken = errors.New("keystone gave no token")
