// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"cmp"
	"crypto/tls"
	"slices"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// authTypes maps the values of OS_AUTH_TYPE to kinds of credentials; "" accepts any.
var authTypes = map[string]string{
	"": "", "password": "password", "v3password": "password", "token": "token", "v3token": "token",
	"v3applicationcredential": "credential", "none": "none",
}

// userOfVariables reads the variables that an openrc file sets.
func userOfVariables(env func(string) string, c Choice) (User, bool, error) {
	with, known := authTypes[env("OS_AUTH_TYPE")]
	if !known {
		return User{}, false, fault.Field("OS_AUTH_TYPE",
			"%q is not possible here; use password, v3applicationcredential or token", env("OS_AUTH_TYPE"))
	}
	secrets := []string{"OS_PASSWORD", "OS_TOKEN", "OS_APPLICATION_CREDENTIAL_SECRET"}
	i := slices.IndexFunc(secrets, func(name string) bool { return env(name) != "" })
	if with == "none" || env("OS_AUTH_URL") == "" && i < 0 {
		return User{}, false, nil
	}
	if env("OS_AUTH_URL") == "" {
		return User{}, false, fault.Field("OS_AUTH_URL", "must be the address of Keystone, because %s is set", secrets[i])
	}
	trust, err := trustOf(env)
	if err != nil {
		return User{}, false, err
	}
	a := gophercloud.AuthOptions{
		IdentityEndpoint: env("OS_AUTH_URL"), Username: env("OS_USERNAME"), UserID: env("OS_USER_ID"), Scope: scopeOf(env),
	}
	a.DomainID, a.DomainName = domainOf(env, "USER")
	if with == "password" || with == "" {
		a.Password = env("OS_PASSWORD")
	}
	if with == "token" || with == "" {
		a.TokenID = env("OS_TOKEN")
	}
	if with == "credential" || with == "" {
		a.ApplicationCredentialID = env("OS_APPLICATION_CREDENTIAL_ID")
		a.ApplicationCredentialName = env("OS_APPLICATION_CREDENTIAL_NAME")
		a.ApplicationCredentialSecret = env("OS_APPLICATION_CREDENTIAL_SECRET")
	}
	return User{
		source: "the OS_* variables", auth: a, tls: trust,
		region: c.Region, availability: gophercloud.Availability(cmp.Or(c.Interface, "public")),
	}, true, nil
}

// scopeOf returns the scope of the token: the system, a project or a domain.
func scopeOf(env func(string) string) *gophercloud.AuthScope {
	scope := &gophercloud.AuthScope{}
	switch {
	case env("OS_SYSTEM_SCOPE") != "":
		scope.System = true
	case env("OS_PROJECT_ID") != "":
		scope.ProjectID = env("OS_PROJECT_ID")
	case env("OS_PROJECT_NAME") != "":
		scope.ProjectName = env("OS_PROJECT_NAME")
		scope.DomainID, scope.DomainName = domainOf(env, "PROJECT")
	default:
		scope.DomainID, scope.DomainName = env("OS_DOMAIN_ID"), env("OS_DOMAIN_NAME")
	}
	return scope
}

// domainOf returns the ID or the name of the domain of a USER or a PROJECT.
func domainOf(env func(string) string, whose string) (id, name string) {
	if id, name = env("OS_"+whose+"_DOMAIN_ID"), env("OS_"+whose+"_DOMAIN_NAME"); id != "" || name != "" {
		return id, name
	}
	return cmp.Or(env("OS_DEFAULT_DOMAIN_ID"), env("OS_DEFAULT_DOMAIN")), env("OS_DEFAULT_DOMAIN_NAME")
}

// trustOf returns which server certificates are trusted.
func trustOf(env func(string) string) (*tls.Config, error) {
	insecure := false
	if text := strings.TrimSpace(env("OS_INSECURE")); text != "" {
		var err error
		if insecure, err = strconv.ParseBool(text); err != nil {
			return nil, fault.Field("OS_INSECURE", "must be true or false, not %q", text)
		}
	}
	trust, err := openstack.Trust(env("OS_CACERT"), insecure)
	if err != nil {
		return nil, fault.Field("OS_CACERT", "%v", err)
	}
	return trust, nil
}
