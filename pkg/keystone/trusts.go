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

// Trusts let the service user act in the names of others, in one project each and with
// the roles that they had there, as long as they have them (Keystone's OS-TRUST, which Heat
// uses likewise).
type Trusts struct {
	Session *Session
}

// Trustor is who trusts, by a token of his own.
type Trustor struct {
	Token             string
	UserID, ProjectID string
	Roles             []string // names
}

// Make makes a trust that lasts until it is ended, and gives its id, which is no secret:
// it is of use to the service user only. It fails with a Denied fault where Keystone does
// not let the token make one.
func (t Trusts) Make(ctx context.Context, by Trustor) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.Session.connection.Timeout)
	defer cancel()
	own, err := t.Session.login(ctx, "")
	if err != nil {
		return "", err
	}
	trustee, err := userOf(own.GetAuthResult())
	if err != nil {
		return "", err
	}
	client, err := t.Session.connection.client()
	if err != nil {
		return "", err
	}
	client.Endpoint = own.Endpoint
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
	const doing = "Almanac creates servers in your name later by a trust of Keystone"
	switch openstack.Status(err) {
	case http.StatusForbidden, http.StatusNotFound:
		return "", &fault.Error{Kind: fault.Denied, Err: err, Message: doing + ", which your token may not make: " +
			"use one of your password, or of an application credential that is unrestricted"}
	case http.StatusUnauthorized:
		return "", rejected()
	}
	return "", &fault.Error{Kind: fault.Unavailable, Message: doing + ", which Keystone does not make at the moment; try again", Err: err}
}

// userOf gives the id of the user who has logged in.
func userOf(login any) (string, error) {
	result, ok := login.(tokens.CreateResult)
	if !ok {
		return "", errNoToken
	}
	user, err := result.ExtractUser()
	if err == nil && (user == nil || user.ID == "") {
		err = errors.New("the login of the service user names no user")
	}
	if err != nil {
		return "", err
	}
	return user.ID, nil
}

// As gives a session in the name of who made the trust. It asks Keystone nothing yet.
func (t Trusts) As(trust string) (*Session, error) {
	c := t.Session.connection
	if c.ApplicationCredentialSecret != "" {
		return nil, option("application_credential_id", "cannot be used with a trust, which takes username and password")
	}
	c.trust = trust
	// That Keystone refuses it says something of the trust, and nothing of the service user.
	return NewSession(c, t.Session.now, slog.New(slog.DiscardHandler))
}

// Enter gives a session in the name of who made the trust, logged in. It fails with a
// Denied fault where Keystone refuses the trust, and the service user not.
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
	return nil, &fault.Error{Kind: fault.Denied, Err: err, Message: "Keystone lets nobody act in the name of its owner any more: " +
		"he is gone or disabled, or has lost a role in the project"}
}

// End ends a trust, in the name of who made it; where he is gone, as the service user,
// who may as an admin. That it is gone is no error.
func (t Trusts) End(ctx context.Context, trust string) error {
	session, err := t.As(trust)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, session.connection.Timeout)
	defer cancel()
	client, _, err := session.connection.open(ctx)
	if isRefusal(err) { // of the trust, or of him who made it, if not of the service user
		client, err = t.Session.login(ctx, "")
	}
	if err != nil {
		return err
	}
	err = told(trusts.Delete(ctx, client, trust).ExtractErr())
	if openstack.Status(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// granted gives what is sent to log in: with the trust, where there is one.
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
