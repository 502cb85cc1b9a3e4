// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net"
	"net/http"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/policy"
)

// Fixed is a serving.Authenticator that returns the same credentials for everybody on this machine.
type Fixed policy.Credentials

// Authenticate implements serving.Authenticator. It denies a request addressed to a name other than this
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

// Knows implements serving.Authenticator.
func (Fixed) Knows(*http.Request) bool { return true }

// Validator validates the tokens of a request (X-Auth-Token, X-Service-Token); *keystone.Validator
// implements it.
type Validator interface {
	Authenticate(r *http.Request) (keystone.Token, error)
	Knows(r *http.Request) bool
}

// Keystone is a serving.Authenticator that relies on Keystone's tokens.
type Keystone struct {
	Tokens Validator
}

// Authenticate implements serving.Authenticator.
func (k Keystone) Authenticate(r *http.Request) (policy.Credentials, error) {
	t, err := k.Tokens.Authenticate(r)
	if err != nil {
		return policy.Credentials{}, err
	}
	return CredentialsOf(t), nil
}

// Knows implements serving.Authenticator.
func (k Keystone) Knows(r *http.Request) bool { return k.Tokens.Knows(r) }

// CredentialsOf returns the credentials of a token's owner, for policy rules.
func CredentialsOf(t keystone.Token) policy.Credentials {
	return policy.Credentials{
		UserID: t.UserID, UserDomainID: t.UserDomainID, ProjectID: t.ProjectID, ProjectDomainID: t.ProjectDomainID,
		DomainID: t.DomainID, System: t.System, IsAdminProject: t.IsAdminProject, Roles: t.Roles,
	}
}
