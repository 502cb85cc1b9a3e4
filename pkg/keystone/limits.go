// SPDX-License-Identifier: Apache-2.0

package keystone

import (
	"context"
	"math"
	"net/http"
	"slices"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/registeredlimits"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Limits maintains registered limits of Nova in Keystone (unified limits), as the service user.
type Limits struct {
	Session *Session
}

// noLimit is the largest limit that Keystone accepts. Older releases of oslo.limit do not know -1.
const noLimit = math.MaxInt32

// Lift lets all projects use any amount of a resource class, if Nova enforces unified limits. Without a
// registered limit, Nova before 2025.1 refuses all servers whose flavor has the class, and a newer one
// does so with [quota] unified_limits_resource_strategy = ignore (nova/limit/placement.py). The
// registered limits for servers reveal that Nova enforces unified limits, and in which regions.
//
// If Keystone does not let the service user register limits, Lift logs what to do and succeeds.
func (l Limits) Lift(ctx context.Context, class string) error {
	err := l.change(ctx, func(client *gophercloud.ServiceClient, compute string) error {
		servers, err := registered(ctx, client, compute, "servers")
		if err != nil || len(servers) == 0 {
			return err
		}
		there, err := registered(ctx, client, compute, resourceOf(class))
		if err != nil {
			return err
		}
		var missing registeredlimits.BatchCreateOpts
		for _, s := range servers {
			if !slices.ContainsFunc(there, func(r registeredlimits.RegisteredLimit) bool { return r.RegionID == s.RegionID }) {
				missing = append(missing, registeredlimits.CreateOpts{ServiceID: compute, RegionID: s.RegionID, ResourceName: resourceOf(class), DefaultLimit: noLimit})
			}
		}
		if len(missing) == 0 {
			return nil
		}
		err = told(registeredlimits.BatchCreate(ctx, client, missing).Err)
		if openstack.Status(err) == http.StatusConflict { // another replica was faster
			return nil
		}
		return err
	})
	if openstack.Status(err) == http.StatusForbidden {
		l.Session.log.Warn("keystone does not let Almanac's user register limits, so Nova may refuse servers of a reservation of instances; "+
			"assign the role admin to the user", "user", l.Session.connection.name(), "limit", resourceOf(class), "error", err)
		return nil
	}
	return fault.While(err, "register a limit for %s in Keystone", class)
}

// Drop deletes the registered limits of a resource class. Without any it does nothing.
func (l Limits) Drop(ctx context.Context, class string) error {
	err := l.change(ctx, func(client *gophercloud.ServiceClient, compute string) error {
		there, err := registered(ctx, client, compute, resourceOf(class))
		if err != nil {
			return err
		}
		for _, one := range there {
			if err := openstack.UnlessMissing(told(registeredlimits.Delete(ctx, client, one.ID).Err)); err != nil {
				return err
			}
		}
		return nil
	})
	return fault.While(err, "delete the limit for %s in Keystone", class)
}

// resourceOf returns the name of a resource class in limits (nova/limit/placement.py).
func resourceOf(class string) string { return "class:" + class }

// registered returns the registered limits of a resource of a service, in all regions.
func registered(ctx context.Context, client *gophercloud.ServiceClient, service, resource string) ([]registeredlimits.RegisteredLimit, error) {
	pages, err := registeredlimits.List(client, registeredlimits.ListOpts{ServiceID: service, ResourceName: resource}).AllPages(ctx)
	if err != nil {
		return nil, told(err)
	}
	return registeredlimits.ExtractRegisteredLimits(pages)
}

// change calls do with the ID of Nova's service. Without Nova in the catalog there is nothing to
// change.
func (l Limits) change(ctx context.Context, do func(client *gophercloud.ServiceClient, compute string) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.Session.connection.Timeout)
	defer cancel()
	return l.Session.call(ctx, func(g grant) error {
		i := slices.IndexFunc(g.catalog, func(e tokens.CatalogEntry) bool { return e.Type == "compute" })
		if i < 0 {
			return nil
		}
		return do(g.client, g.catalog[i].ID)
	})
}
