// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"net/http"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"

	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Names of projects, users and roles are unique in Keystone: of two concurrent calls that
// create the same name the second one gets 409 and starts again.

// project returns the ID of the service user's project, or "" if a dry run would create it.
func (r *registrar) project(ctx context.Context) (string, error) {
	pages, err := projects.List(r.client, projects.ListOpts{Name: r.Project, DomainID: r.Domain}).AllPages(ctx)
	if err != nil {
		return "", told(err)
	}
	found, err := projects.ExtractProjects(pages)
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		r.report(Present, "project %s", r.Project)
		return found[0].ID, nil
	}
	r.report(Created, "project %s", r.Project)
	if r.DryRun {
		return "", nil
	}
	made, err := projects.Create(ctx, r.client, projects.CreateOpts{Name: r.Project, DomainID: r.Domain}).Extract()
	if err != nil {
		return "", told(err)
	}
	return made.ID, nil
}

// user returns the ID of the service user, or "" if a dry run would create it.
func (r *registrar) user(ctx context.Context) (string, error) {
	pages, err := users.List(r.client, users.ListOpts{Name: r.User, DomainID: r.Domain}).AllPages(ctx)
	if err != nil {
		return "", told(err)
	}
	found, err := users.ExtractUsers(pages)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		r.report(Created, "user %s", r.User)
		if r.DryRun {
			return "", nil
		}
		made, err := users.Create(ctx, r.client, users.CreateOpts{
			Name: r.User, DomainID: r.Domain, Password: r.Password, Description: userDescription,
		}).Extract()
		if err != nil {
			return "", told(err)
		}
		return made.ID, nil
	}
	if !r.ResetPassword {
		r.report(Present, "user %s, whose password stays", r.User)
		return found[0].ID, nil
	}
	r.report(Changed, "password of user %s", r.User)
	if !r.DryRun {
		_, err = users.Update(ctx, r.client, found[0].ID, users.UpdateOpts{Password: r.Password}).Extract()
	}
	return found[0].ID, told(err)
}

// grant assigns the user a role in the project. It creates a missing role, such as service
// before Keystone 2023.2.
func (r *registrar) grant(ctx context.Context, name, user, project string) error {
	role, err := r.role(ctx, name)
	if err != nil {
		return err
	}
	on := roles.ValidateOpts{UserID: user, ProjectID: project}
	if role != "" && user != "" && project != "" {
		err := told(roles.Validate(ctx, r.client, role, on).ExtractErr())
		if err == nil {
			r.report(Present, "role %s of user %s in project %s", name, r.User, r.Project)
			return nil
		}
		if openstack.Status(err) != http.StatusNotFound {
			return err
		}
	}
	if !r.DryRun {
		if err := told(roles.Assign(ctx, r.client, role, roles.AssignOpts(on)).ExtractErr()); err != nil {
			return err
		}
	}
	r.report(Created, "role %s of user %s in project %s", name, r.User, r.Project)
	return nil
}

// role returns the ID of a role, or "" if a dry run would create it.
func (r *registrar) role(ctx context.Context, name string) (string, error) {
	pages, err := roles.List(r.client, roles.ListOpts{Name: name}).AllPages(ctx)
	if err != nil {
		return "", told(err)
	}
	found, err := roles.ExtractRoles(pages)
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return found[0].ID, nil
	}
	r.report(Created, "role %s", name)
	if r.DryRun {
		return "", nil
	}
	made, err := roles.Create(ctx, r.client, roles.CreateOpts{Name: name}).Extract()
	if err != nil {
		return "", told(err)
	}
	return made.ID, nil
}
