package keystone

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Projects asks Keystone about projects, as the service user.
type Projects struct {
	Session *Session
}

// Exists says whether there is a project with that id, enabled or not. It fails where
// Keystone cannot be asked or does not say, and where it does not find the project of
// the service user either: then its answers are not to be believed.
func (p Projects) Exists(ctx context.Context, project string) (bool, error) {
	there, err := p.exists(ctx, project)
	if err != nil {
		return false, fmt.Errorf("ask Keystone for project %s: %w", project, err)
	}
	if there {
		return true, nil
	}
	own, err := p.own(ctx)
	if err != nil {
		return false, fmt.Errorf("ask Keystone for project %s: %w", project, err)
	}
	sane, err := p.exists(ctx, own)
	if err != nil {
		return false, fmt.Errorf("ask Keystone for project %s of the service user: %w", own, err)
	}
	if !sane {
		return false, fault.New(fault.Unavailable, "Keystone finds neither project %s nor that of Almanac's own user, %s; its answers are not believed", project, own)
	}
	return false, nil
}

// own is the id of the project that the service user is logged in to.
func (p Projects) own(ctx context.Context) (string, error) {
	client, err := p.Session.login(ctx, "")
	if err != nil {
		return "", err
	}
	login, ok := client.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return "", errors.New("the session has no token")
	}
	project, err := login.ExtractProject()
	if err != nil {
		return "", err
	}
	if project == nil || project.ID == "" {
		return "", errors.New("the login of the service user names no project")
	}
	return project.ID, nil
}

func (p Projects) exists(ctx context.Context, project string) (bool, error) {
	client, err := p.Session.login(ctx, "")
	if err != nil {
		return false, err
	}
	err = told(projects.Get(ctx, client, project).Err)
	if openstack.Status(err) == http.StatusUnauthorized { // the token has been revoked
		if client, err = p.Session.login(ctx, client.Token()); err != nil {
			return false, err
		}
		err = told(projects.Get(ctx, client, project).Err)
	}
	switch {
	case err == nil:
		return true, nil
	case openstack.Status(err) == http.StatusNotFound:
		return false, nil
	default:
		return false, err
	}
}
