// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// User is a user of Keystone with the address and credentials from the OS_* variables or from
// clouds.yaml.
type User struct {
	source       string // of the fields below, for messages
	auth         gophercloud.AuthOptions
	tls          *tls.Config
	region       string                   // empty: any
	availability gophercloud.Availability // the interface of endpoints
}

// Choice overrides the environment; empty fields are taken from it.
type Choice struct {
	Cloud, Region, Interface string
}

// FindUser returns the user of the environment: with OS_CLOUD an entry of clouds.yaml and
// secure.yaml, else the variables of an openrc file. It returns false if the environment has
// no user, and an Invalid fault if something is missing or wrong.
func FindUser(env func(string) string, c Choice) (User, bool, error) {
	c.Cloud = cmp.Or(c.Cloud, env("OS_CLOUD"))
	c.Region = cmp.Or(c.Region, env("OS_REGION_NAME"))
	c.Interface = strings.TrimSuffix(cmp.Or(c.Interface, env("OS_INTERFACE")), "URL")
	if c.Interface != "" && !slices.Contains(Interfaces, c.Interface) {
		return User{}, false, fault.Field("OS_INTERFACE", "must be one of %s, not %q", strings.Join(Interfaces, ", "), c.Interface)
	}
	find := userOfVariables
	if c.Cloud != "" {
		find = userOfCloud
	}
	u, found, err := find(env, c)
	if err != nil || !found {
		return User{}, false, err
	}
	return u, true, u.complete()
}

// userOfCloud reads clouds.yaml: the file in OS_CLIENT_CONFIG_FILE, or the first file in the
// search path of the openstack client.
func userOfCloud(env func(string) string, c Choice) (u User, found bool, err error) {
	options := []clouds.ParseOption{
		clouds.WithCloudName(c.Cloud), clouds.WithRegion(c.Region), clouds.WithEndpointType(c.Interface),
	}
	if file := env("OS_CLIENT_CONFIG_FILE"); file != "" {
		options = append(options, clouds.WithLocations(file))
	}
	wrong := func(problem any) error {
		return fault.Field("OS_CLOUD", "cloud %s cannot be read from clouds.yaml: %v", c.Cloud, problem)
	}
	// The parser panics if an entry has no section auth.
	defer func() {
		if recover() != nil {
			err = wrong("its entry has no section auth")
		}
	}()
	auth, endpoint, trust, err := clouds.Parse(options...)
	if err != nil {
		return User{}, false, wrong(err)
	}
	return User{
		source: fmt.Sprintf("cloud %s of clouds.yaml", c.Cloud), auth: auth, tls: trust,
		region: endpoint.Region, availability: endpoint.Availability,
	}, true, nil
}

// complete reduces the credentials to one kind: an application credential, else a token, else
// a password. A domain that is not set is default.
func (u *User) complete() error {
	a := &u.auth
	if a.Scope == nil {
		a.Scope = &gophercloud.AuthScope{}
	}
	a.TenantID, a.TenantName = "", "" // the scope has them
	if s := a.Scope; s.ProjectName != "" {
		s.DomainID, s.DomainName = domain(s.DomainID, s.DomainName)
	} else if s.DomainID != "" {
		s.DomainName = ""
	}
	switch {
	case a.ApplicationCredentialID != "" || a.ApplicationCredentialName != "":
		return u.completeCredential()
	case a.TokenID != "":
		a.Username, a.UserID, a.DomainID, a.DomainName, a.Password = "", "", "", "", ""
	case a.Password == "" || a.Username == "" && a.UserID == "":
		return u.needs("a user with a password, an application credential or a token")
	default:
		u.completeName()
	}
	return nil
}

// completeCredential checks that an application credential is complete, and drops what Keystone does not
// accept beside it.
func (u *User) completeCredential() error {
	a := &u.auth
	a.Password, a.TokenID = "", ""
	switch {
	case a.ApplicationCredentialSecret == "":
		return u.needs("the secret of the application credential")
	case a.ApplicationCredentialID != "":
		a.ApplicationCredentialName, a.Username, a.UserID, a.DomainID, a.DomainName = "", "", "", "", ""
	case a.Username == "" && a.UserID == "":
		return u.needs("the ID of the application credential, or its user and name,")
	default:
		u.completeName()
	}
	return nil
}

// completeName keeps the parts of a user's ID, name and domain that Keystone accepts together.
func (u *User) completeName() {
	a := &u.auth
	if a.UserID != "" {
		a.Username, a.DomainID, a.DomainName = "", "", ""
		return
	}
	a.DomainID, a.DomainName = domain(a.DomainID, a.DomainName)
}

// domain returns an ID or a name.
func domain(id, name string) (string, string) {
	switch {
	case id != "":
		return id, ""
	case name != "":
		return "", name
	default:
		return "default", ""
	}
}

func (u *User) needs(what string) error {
	return fault.New(fault.Invalid, "to log in to Keystone, %s is required in %s", what, u.source)
}

// name returns the name of the user for messages.
func (u User) name() string {
	switch a := u.auth; {
	case a.ApplicationCredentialID != "":
		return "application credential " + a.ApplicationCredentialID
	case a.ApplicationCredentialName != "":
		return "application credential " + a.ApplicationCredentialName
	case a.TokenID != "":
		return "your token"
	case a.UserID != "":
		return "user " + a.UserID
	default:
		return "user " + a.Username
	}
}
