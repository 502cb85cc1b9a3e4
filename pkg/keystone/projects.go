// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Projects looks up projects as the service user.
type Projects struct {
	Session *Session
}

// Exists reports whether there is a project with that ID, enabled or not. It fails if
// Keystone does not respond, and if Keystone does not find the project of the service user
// either, because its responses are then wrong.
func (p Projects) Exists(ctx context.Context, project string) (bool, error) {
	there, err := p.exists(ctx, project)
	if err != nil {
		return false, fmt.Errorf("look up project %s in Keystone: %w", project, err)
	}
	if there {
		return true, nil
	}
	own, err := p.own(ctx)
	if err != nil {
		return false, fmt.Errorf("look up project %s in Keystone: %w", project, err)
	}
	sane, err := p.exists(ctx, own)
	if err != nil {
		return false, fmt.Errorf("look up project %s of the service user in Keystone: %w", own, err)
	}
	if !sane {
		return false, fault.New(fault.Unavailable, "Keystone finds neither project %s nor the project of Almanac's own user, %s; its responses cannot be trusted", project, own)
	}
	return false, nil
}

// own returns the ID of the project of the service user's token.
func (p Projects) own(ctx context.Context) (string, error) {
	g, err := p.Session.login(ctx, "")
	if err != nil {
		return "", err
	}
	project, err := g.result.ExtractProject()
	if err != nil {
		return "", err
	}
	if project == nil || project.ID == "" {
		return "", errors.New("the token of the service user has no project")
	}
	return project.ID, nil
}

// exists reports whether Keystone has the project.
func (p Projects) exists(ctx context.Context, project string) (bool, error) {
	err := p.Session.call(ctx, func(g grant) error { return told(projects.Get(ctx, g.client, project).Err) })
	switch {
	case err == nil:
		return true, nil
	case openstack.Status(err) == http.StatusNotFound:
		return false, nil
	default:
		return false, err
	}
}
