// SPDX-License-Identifier: Apache-2.0

package nova

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// CreateFlavor creates a flavor with the ID, without extra specs. An existing flavor with that
// ID and name is no error; another flavor with the name is a Conflict fault.
func (c *Client) CreateFlavor(ctx context.Context, f inventory.Flavor) error {
	doing := "create flavor " + f.ID
	body := map[string]any{"flavor": map[string]any{
		"id": f.ID, "name": f.Name, "vcpus": f.Resources.VCPUs, "ram": f.Resources.MemoryMB, "disk": f.Resources.DiskGB,
		"OS-FLV-EXT-DATA:ephemeral": f.EphemeralGB, "swap": f.SwapMB, "os-flavor-access:is_public": f.Public,
	}}
	err := c.service.Send(ctx, doing, http.MethodPost, "flavors", body, nil, http.StatusOK)
	if fault.Is(err, fault.Conflict) {
		var found struct{ Flavor struct{ ID string } }
		if look := c.service.Get(ctx, doing, flavorPath(f.ID), &found); look == nil && found.Flavor.ID == f.ID {
			err = nil
		}
	}
	return err
}

// SetExtraSpecs sets extra specs of the flavor with the ID; others stay.
func (c *Client) SetExtraSpecs(ctx context.Context, flavor string, specs map[string]string) error {
	if len(specs) == 0 {
		return nil
	}
	return c.service.Send(ctx, "set extra specs of flavor "+flavor, http.MethodPost, flavorPath(flavor)+"/os-extra_specs",
		map[string]any{"extra_specs": specs}, nil, http.StatusOK)
}

// DeleteExtraSpec removes an extra spec from the flavor with the ID. A missing extra spec is no
// error; a missing flavor is a NotFound fault.
func (c *Client) DeleteExtraSpec(ctx context.Context, flavor, spec string) error {
	doing := "delete extra spec " + spec + " of flavor " + flavor
	err := c.service.Send(ctx, doing, http.MethodDelete, flavorPath(flavor)+"/os-extra_specs/"+url.PathEscape(spec), nil, nil, http.StatusOK)
	if fault.Is(err, fault.NotFound) { // the flavor or the extra spec
		var found struct{ Flavor struct{ ID string } }
		return c.service.Get(ctx, doing, flavorPath(flavor), &found)
	}
	return err
}

// DeleteFlavor deletes the flavor with the ID. A missing flavor is no error. Servers keep their
// copy of it.
func (c *Client) DeleteFlavor(ctx context.Context, flavor string) error {
	return openstack.UnlessMissing(c.service.Send(ctx, "delete flavor "+flavor, http.MethodDelete, flavorPath(flavor), nil, nil,
		http.StatusAccepted, http.StatusNoContent))
}

// GrantFlavor lets a project use the private flavor with the ID. It is no error if the project
// already may. A missing flavor is a NotFound fault, a project that Keystone does not know an
// Invalid one.
func (c *Client) GrantFlavor(ctx context.Context, flavor, project string) error {
	err := c.flavorAccess(ctx, fmt.Sprintf("let project %s use flavor %s", project, flavor), flavor, "addTenantAccess", project)
	if answer, ok := errors.AsType[*openstack.Answer](err); ok && answer.Status == http.StatusConflict && strings.Contains(answer.Message, "already exists") {
		return nil // otherwise it is a public one: nova/api/openstack/compute/flavor_access.py
	}
	return err
}

// RevokeFlavor ends a project's access to the flavor with the ID. A project without access and
// a missing flavor are no errors.
func (c *Client) RevokeFlavor(ctx context.Context, flavor, project string) error {
	doing := fmt.Sprintf("revoke the access of project %s to flavor %s", project, flavor)
	return openstack.UnlessMissing(c.flavorAccess(ctx, doing, flavor, "removeTenantAccess", project))
}

func (c *Client) flavorAccess(ctx context.Context, doing, flavor, action, project string) error {
	body := map[string]any{action: map[string]string{"tenant": project}}
	return c.service.Send(ctx, doing, http.MethodPost, flavorPath(flavor)+"/action", body, nil, http.StatusOK)
}

// flavorsAtOnce is the page size of FlavorIDs.
const flavorsAtOnce = 20

// FlavorIDs returns first and the IDs of all flavors that begin with first and a dash. Nova
// sorts flavors by ID, so this is one short call. A missing flavor first is a NotFound fault.
func (c *Client) FlavorIDs(ctx context.Context, first string) ([]string, error) {
	doing := "list the flavors after " + first
	ids, marker := []string{first}, first
	for {
		var page struct{ Flavors []struct{ ID string } }
		query := url.Values{"is_public": {"None"}, "sort_key": {"flavorid"}, "sort_dir": {"asc"}, "marker": {marker}, "limit": {strconv.Itoa(flavorsAtOnce)}}
		err := c.service.Get(ctx, doing, "flavors?"+query.Encode(), &page)
		if fault.Is(err, fault.Invalid) { // "marker not found"
			return nil, fmt.Errorf("%s: %w", doing, &fault.Error{Kind: fault.NotFound, Message: "there is no flavor " + marker, Err: err})
		}
		if err != nil {
			return nil, err
		}
		if page.Flavors == nil {
			return nil, c.service.Malformed(doing, "it contains no list of flavors")
		}
		for _, f := range page.Flavors {
			if !strings.HasPrefix(f.ID, first+"-") {
				return ids, nil
			}
			ids, marker = append(ids, f.ID), f.ID
		}
		if len(page.Flavors) < flavorsAtOnce {
			return ids, nil
		}
	}
}

func flavorPath(id string) string { return "flavors/" + url.PathEscape(id) }
