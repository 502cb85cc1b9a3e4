// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/trusts"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Trusts lets the service user act on behalf of other users, in one project each and with
// the roles that the user had there, as long as the user keeps them (Keystone's OS-TRUST
// extension, which Heat also uses).
type Trusts struct {
	Session *Session
}

// Trustor is the user who makes a trust.
type Trustor struct {
	Token             string // of the user
	UserID, ProjectID string
	Roles             []string // names
}

// Make makes a trust without an expiry and returns its ID. The ID is not a secret: only the
// service user can use it. It fails with a Denied fault if the token may not make trusts.
func (t Trusts) Make(ctx context.Context, by Trustor) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.Session.connection.Timeout)
	defer cancel()
	own, err := t.Session.login(ctx, "")
	if err != nil {
		return "", err
	}
	trustee, err := userOf(own.result)
	if err != nil {
		return "", err
	}
	client, err := t.Session.connection.client()
	if err != nil {
		return "", err
	}
	client.Endpoint = own.client.Endpoint
	client.SetToken(by.Token)
	roles := make([]trusts.Role, len(by.Roles))
	for i, name := range by.Roles {
		roles[i].Name = name
	}
	made, err := trusts.Create(ctx, client, trusts.CreateOpts{
		Impersonation: true, TrusteeUserID: trustee, TrustorUserID: by.UserID, ProjectID: by.ProjectID, Roles: roles,
	}).Extract()
	if err == nil {
		return made.ID, nil
	}
	err = told(err)
	const doing = "Almanac later creates servers on your behalf with a Keystone trust"
	switch openstack.Status(err) {
	case http.StatusForbidden, http.StatusNotFound:
		return "", &fault.Error{Kind: fault.Denied, Err: err, Message: doing + ", which your token may not make: " +
			"use a token from your password or from an unrestricted application credential"}
	case http.StatusUnauthorized:
		return "", rejected()
	}
	return "", &fault.Error{Kind: fault.Unavailable, Message: doing + ", which Keystone cannot make at the moment; try again", Err: err}
}

// userOf returns the ID of the user of a token.
func userOf(login tokens.CreateResult) (string, error) {
	user, err := login.ExtractUser()
	if err == nil && (user == nil || user.ID == "") {
		err = errors.New("the token of the service user has no user")
	}
	if err != nil {
		return "", err
	}
	return user.ID, nil
}

// As returns a session on behalf of the user who made the trust, without a request to
// Keystone.
func (t Trusts) As(trust string) (*Session, error) {
	c := t.Session.connection
	if c.ApplicationCredentialSecret != "" {
		return nil, option("application_credential_id", "cannot be used with a trust, which requires username and password")
	}
	c.trust = trust
	// A refusal concerns the trust and not the service user, so it is not logged.
	return NewSession(c, t.Session.now, slog.New(slog.DiscardHandler))
}

// Enter returns a session with a token on behalf of the user who made the trust. It fails
// with a Denied fault if Keystone refuses the trust but accepts the service user.
func (t Trusts) Enter(ctx context.Context, trust string) (*Session, error) {
	session, err := t.As(trust)
	if err != nil {
		return nil, err
	}
	_, err = session.login(ctx, "")
	if !isRefusal(err) {
		return session, err
	}
	if _, own := t.Session.login(ctx, ""); own != nil {
		return nil, own
	}
	return nil, &fault.Error{Kind: fault.Denied, Err: err, Message: "Keystone no longer allows Almanac to act on behalf of its owner, who " +
		"was deleted or disabled, or lost a role in the project"}
}

// End deletes a trust, on behalf of the user who made it or, if that user is gone, as the
// service user, which requires the role admin. It returns nil if the trust is gone.
func (t Trusts) End(ctx context.Context, trust string) error {
	session, err := t.As(trust)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, session.connection.Timeout)
	defer cancel()
	g, err := session.connection.open(ctx)
	if isRefusal(err) { // of the trust or its maker, unless Keystone also refuses the service user
		g, err = t.Session.login(ctx, "")
	}
	if err != nil {
		return err
	}
	err = told(trusts.Delete(ctx, g.client, trust).ExtractErr())
	if openstack.Status(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// granted returns the body of a login request, with the trust if there is one.
func (c Connection) granted() tokens.AuthOptionsBuilder {
	login := c.login()
	if c.trust == "" {
		return login
	}
	login.Scope = tokens.Scope{}
	return trusted{login, c.trust}
}

// trusted is a login that is scoped to a trust.
type trusted struct {
	*tokens.AuthOptions
	trust string
}

// ToTokenV3ScopeMap implements tokens.AuthOptionsBuilder.
func (t trusted) ToTokenV3ScopeMap() (map[string]any, error) {
	return map[string]any{"OS-TRUST:trust": map[string]any{"id": t.trust}}, nil
}
