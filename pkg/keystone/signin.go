// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// SignIn exchanges the credentials of the users of a page for tokens. It is safe for concurrent use.
type SignIn struct {
	connection Connection
	client     *gophercloud.ServiceClient // without a token
}

// SignInCredentials are what a user enters: a name and a password, an application credential, or a token.
type SignInCredentials struct {
	Username, Password, Domain string // Domain is the name of the user's domain; empty means Default
	ApplicationCredentialID    string
	Secret                     string // of the application credential
	Token                      string
	ProjectID                  string // with Token: the project of the new token; empty means the token's own
}

// Project is a project in Keystone.
type Project struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	DomainID string `json:"domain_id"`
	Enabled  bool   `json:"enabled"`
}

// NewSignIn returns a SignIn at the Keystone of the connection, without a request. It fails with an Invalid fault
// if the address or the certificates cannot work.
func NewSignIn(c Connection) (*SignIn, error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	return &SignIn{connection: c, client: client}, nil
}

// SignIn returns a token for a project of the user: their default project, or else the first by name. With a token and a
// project, it returns another token for that project; a token alone is returned as it is. It fails with an Unauthorized fault if Keystone refuses the credentials, with a
// Denied one if the user has no project, and with an Unavailable one if Keystone does not answer.
func (s *SignIn) SignIn(ctx context.Context, by SignInCredentials) (token string, err error) {
	by.Token = strings.TrimSpace(by.Token)
	switch {
	case by.Token != "" && by.ProjectID != "":
		return s.rescope(ctx, by.Token, by.ProjectID)
	case by.Token != "":
		return by.Token, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.connection.Timeout)
	defer cancel()
	auth := &tokens.AuthOptions{ApplicationCredentialID: by.ApplicationCredentialID, ApplicationCredentialSecret: by.Secret}
	if by.ApplicationCredentialID == "" {
		auth = &tokens.AuthOptions{Username: by.Username, Password: by.Password, DomainName: cmp.Or(by.Domain, "Default")}
	}
	g, err := logIn(ctx, s.client, auth)
	if err != nil {
		return "", refused(err)
	}
	scope, err := g.result.ExtractProject()
	if err != nil {
		return "", away(err)
	}
	if scope != nil && scope.ID != "" {
		return g.token, nil
	}
	projects, err := s.Projects(ctx, g.token)
	if err != nil {
		return "", err
	}
	if len(projects) == 0 {
		return "", fault.New(fault.Denied, "you have a role in no project; ask your operator for one")
	}
	return s.rescope(ctx, g.token, projects[0].ID)
}

// rescope returns a token of the same user for another project.
func (s *SignIn) rescope(ctx context.Context, token, project string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.connection.Timeout)
	defer cancel()
	g, err := logIn(ctx, s.client, &tokens.AuthOptions{TokenID: token, Scope: tokens.Scope{ProjectID: project}})
	if err != nil {
		if openstack.Status(err) == http.StatusForbidden {
			return "", &fault.Error{Kind: fault.Denied, Message: "Keystone issues no token for another project to you; sign out, and sign in for that project", Err: err}
		}
		return "", refused(err)
	}
	return g.token, nil
}

// Projects returns the projects for which the owner of a token can get one, sorted by name.
func (s *SignIn) Projects(ctx context.Context, token string) ([]Project, error) {
	list, err := s.list(ctx, token, s.client.ServiceURL("auth", "projects"))
	return slices.DeleteFunc(list, func(p Project) bool { return !p.Enabled }), err
}

// AllProjects returns the projects that the owner of a token may list, enabled or not, sorted by name; none if
// Keystone lets them list none.
func (s *SignIn) AllProjects(ctx context.Context, token string) ([]Project, error) {
	list, err := s.list(ctx, token, s.client.ServiceURL("projects"))
	if openstack.Status(err) == http.StatusForbidden {
		return nil, nil
	}
	return list, err
}

// list returns the projects at an address of Keystone, sorted by name.
func (s *SignIn) list(ctx context.Context, token, address string) ([]Project, error) {
	ctx, cancel := context.WithTimeout(ctx, s.connection.Timeout)
	defer cancel()
	var body struct{ Projects []Project }
	response, err := s.client.Get(ctx, address, &body, bearing(token))
	if err != nil {
		return nil, refused(told(err))
	}
	response.Body.Close()
	slices.SortFunc(body.Projects, func(a, b Project) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID)) })
	return body.Projects, nil
}

// Revoke ends the validity of a token.
func (s *SignIn) Revoke(ctx context.Context, token string) error {
	ctx, cancel := context.WithTimeout(ctx, s.connection.Timeout)
	defer cancel()
	o := bearing(token)
	o.MoreHeaders["X-Subject-Token"] = token
	response, err := s.client.Delete(ctx, s.client.ServiceURL("auth", "tokens"), o)
	if err != nil {
		return refused(told(err))
	}
	response.Body.Close()
	return nil
}

// bearing returns the options of a request that a token authorizes.
func bearing(token string) *gophercloud.RequestOpts {
	return &gophercloud.RequestOpts{MoreHeaders: map[string]string{"X-Auth-Token": token}}
}

// refused returns the error for a user whose request to Keystone failed.
func refused(err error) error {
	if why := obstacle(err); why != "" {
		return &fault.Error{Kind: fault.Unauthorized, Message: why, Err: err}
	}
	if isRefusal(err) {
		return &fault.Error{Kind: fault.Unauthorized, Message: "Keystone refuses these credentials; check them, and the domain", Err: err}
	}
	return away(err)
}
