package keystone

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"

	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Projects asks Keystone about projects, as the service user.
type Projects struct {
	Session *Session
}

// Exists says whether there is a project with that id, enabled or not. It fails where
// Keystone cannot be asked or does not say.
func (p Projects) Exists(ctx context.Context, project string) (bool, error) {
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
		return false, fmt.Errorf("ask Keystone for project %s: %w", project, err)
	}
}
