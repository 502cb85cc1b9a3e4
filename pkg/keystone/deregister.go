// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/endpoints"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/services"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"

	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// userDescription marks a user that Register created.
const userDescription = "Almanac's service user"

// Deregister deletes what Register created, as the admin of c: the endpoints of the region,
// the service if no region has endpoints any more, and the user if Register created it.
// Projects and roles stay, because others may use them.
func Deregister(ctx context.Context, c Connection, r Registration) error {
	if err := c.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 6*cmp.Or(c.Timeout, DefaultTimeout))
	defer cancel()
	g, err := c.open(ctx)
	if err != nil {
		return fmt.Errorf("log in to Keystone at %s as %s: %w", c.AuthURL, c.name(), err)
	}
	reg := registrar{Registration: r, client: g.client}
	return errors.Join(reg.removeServices(ctx), reg.removeUser(ctx))
}

// removeServices removes Almanac's services with their endpoints.
func (r *registrar) removeServices(ctx context.Context) error {
	ours, _, err := r.services(ctx)
	if err != nil {
		return fmt.Errorf("find service %s: %w", r.ServiceName, err)
	}
	for _, id := range ours {
		if err := r.removeService(ctx, id); err != nil {
			return fmt.Errorf("remove service %s: %w", r.ServiceName, err)
		}
	}
	return nil
}

// removeService deletes the service, or only the endpoints of our region if other regions have
// endpoints too.
func (r *registrar) removeService(ctx context.Context, id string) error {
	pages, err := endpoints.List(r.client, endpoints.ListOpts{ServiceID: id}).AllPages(ctx)
	if err != nil {
		return told(err)
	}
	all, err := endpoints.ExtractEndpoints(pages)
	if err != nil {
		return err
	}
	elsewhere := 0
	for _, e := range all {
		if r.Region != "" && e.Region != r.Region {
			elsewhere++
			continue
		}
		if err := r.remove(func() error { return endpoints.Delete(ctx, r.client, e.ID).ExtractErr() },
			"%s endpoint %s in region %s", e.Availability, e.URL, e.Region); err != nil {
			return err
		}
	}
	if elsewhere > 0 {
		r.report(Present, "service %s (%s), which has endpoints in other regions", r.ServiceName, r.ServiceType)
		return nil
	}
	return r.remove(func() error { return services.Delete(ctx, r.client, id).ExtractErr() },
		"service %s (%s)", r.ServiceName, r.ServiceType)
}

// removeUser removes the service user, unless bootstrap did not create it.
func (r *registrar) removeUser(ctx context.Context) error {
	pages, err := users.List(r.client, users.ListOpts{Name: r.User, DomainID: r.Domain}).AllPages(ctx)
	if err != nil {
		return fmt.Errorf("find user %s: %w", r.User, told(err))
	}
	found, err := users.ExtractUsers(pages)
	if err != nil {
		return fmt.Errorf("find user %s: %w", r.User, err)
	}
	for _, u := range found {
		if u.Description != userDescription {
			r.report(Warning, "user %s stays, because bootstrap did not create it", r.User)
			continue
		}
		if err := r.remove(func() error { return users.Delete(ctx, r.client, u.ID).ExtractErr() }, "user %s", r.User); err != nil {
			return fmt.Errorf("remove user %s: %w", r.User, err)
		}
	}
	return nil
}

// remove deletes one thing, unless this is a dry run, and reports it. It ignores that it is
// already gone.
func (r *registrar) remove(act func() error, format string, args ...any) error {
	if !r.DryRun {
		if err := told(act()); err != nil && openstack.Status(err) != http.StatusNotFound {
			return err
		}
	}
	r.report(Removed, format, args...)
	return nil
}
