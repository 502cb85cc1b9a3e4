// SPDX-License-Identifier: Apache-2.0

// Package keystone validates tokens with Keystone, registers Almanac there, and logs in to call
// other services. Its validation follows keystonemiddleware's auth_token, and its options have
// the names of section [keystone_authtoken].
package keystone

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Connection is the address of Keystone and the credentials of a user: a password, or an
// application credential if its secret is set.
type Connection struct {
	AuthURL string // with or without /v3

	Username, UserID, Password         string
	UserDomainID, UserDomainName       string
	ProjectID, ProjectName             string
	ProjectDomainID, ProjectDomainName string
	SystemScope                        string // all: a token of the whole system instead of a project
	ApplicationCredentialID            string
	ApplicationCredentialName          string // with Username or UserID
	ApplicationCredentialSecret        string
	Region                             string
	Interface                          string // internal, public or admin, from the catalog; empty: AuthURL itself
	CAFile                             string // PEM; empty: the system's
	Insecure                           bool   // do not verify Keystone's certificate
	Timeout                            time.Duration

	// trust is the ID of a trust of another user, on whose behalf the login is; empty: none.
	trust string
}

// DefaultTimeout bounds a call to Keystone, including a login and retries, if
// Connection.Timeout is 0.
const DefaultTimeout = 10 * time.Second

// Check returns an Invalid fault about a missing or invalid field.
func (c Connection) Check() error {
	address, err := url.Parse(c.AuthURL)
	if c.AuthURL == "" || err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return option("auth_url", "must be the address of Keystone, such as https://keystone.example.org:5000/v3")
	}
	if c.Interface != "" && c.Interface != "internal" && c.Interface != "public" && c.Interface != "admin" {
		return option("interface", "must be internal, public or admin")
	}
	user := c.Username != "" || c.UserID != ""
	if c.SystemScope != "" && (c.SystemScope != "all" || c.ApplicationCredentialSecret != "") {
		return option("system_scope", "must be all, with a password; application credentials belong to a project")
	}
	if c.ApplicationCredentialSecret != "" {
		if c.ApplicationCredentialID == "" && (c.ApplicationCredentialName == "" || !user) {
			return option("application_credential_id", "is required with application_credential_secret")
		}
		return nil
	}
	if !user || c.Password == "" {
		return option("username", "and password are required, or application_credential_id and application_credential_secret")
	}
	if c.ProjectID == "" && c.ProjectName == "" && c.SystemScope == "" {
		return option("project_name", "is required, usually service: the project of the user's token")
	}
	return nil
}

// option returns a fault about an option of [keystone_authtoken].
func option(name, format string, args ...any) *fault.Error {
	return fault.Field("[keystone_authtoken] "+name, format, args...)
}

// login returns the body of a login request without a trust.
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
	if o.Scope.System = c.SystemScope != ""; o.Scope.System {
		return o
	}
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

// client returns a client of Keystone without a token.
func (c Connection) client() (*gophercloud.ServiceClient, error) {
	trust, err := openstack.Trust(c.CAFile, c.Insecure)
	if err != nil {
		return nil, option("cafile", "%v", err)
	}
	client, err := newClient(c.AuthURL, trust, 0) // contexts bound requests
	if err != nil {
		return nil, option("auth_url", "%v", err)
	}
	return client, nil
}

// endpoint returns the address of Keystone in the catalog of a login, or "" for AuthURL.
func (c Connection) endpoint(catalog []tokens.CatalogEntry) (string, error) {
	if c.Interface == "" {
		return "", nil
	}
	for _, service := range catalog {
		for _, e := range service.Endpoints {
			if service.Type == "identity" && e.Interface == c.Interface && (c.Region == "" || c.Region == e.RegionID) {
				return strings.TrimSuffix(strings.TrimRight(e.URL, "/"), "/v3") + "/v3/", nil
			}
		}
	}
	return "", option("interface", "the catalog has no %s endpoint of Keystone in region %q; correct interface or region_name", c.Interface, c.Region)
}

// told returns gophercloud's error for an unexpected status as an *openstack.Answer.
func told(err error) error { return openstack.AsAnswer("keystone", err) }

const (
	unavailable = "Keystone cannot validate your token at the moment; try again"
	// usualRetry is the Retry-After if Keystone sends none, and longestRetry its maximum.
	usualRetry   = 5 * time.Second
	longestRetry = 5 * time.Minute
)

// away returns the error for a caller whose token Keystone did not validate.
func away(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Unavailable {
		return err
	}
	f := &fault.Error{Kind: fault.Unavailable, Message: unavailable, RetryAfter: usualRetry, Err: err}
	a, ok := errors.AsType[*openstack.Answer](err)
	if ok && a.RetryAfter > 0 {
		f.RetryAfter = min(a.RetryAfter, longestRetry)
	}
	if ok && a.Status == http.StatusForbidden {
		f.Err = fmt.Errorf("the user of [keystone_authtoken] may not validate tokens; assign it the role service or admin: %w", err)
	}
	return f
}
