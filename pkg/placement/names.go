// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// EnsureTrait creates a custom trait unless it exists.
func (c *Client) EnsureTrait(ctx context.Context, name string) error {
	return c.ensure(ctx, "create trait "+name, "traits/"+url.PathEscape(name))
}

// DeleteTrait deletes a custom trait; a missing trait is no error. It returns a Conflict fault
// while a provider has the trait.
func (c *Client) DeleteTrait(ctx context.Context, name string) error {
	return c.delete(ctx, "delete trait "+name, "traits/"+url.PathEscape(name))
}

// TraitNames returns the existing traits that begin with prefix, sorted.
func (c *Client) TraitNames(ctx context.Context, prefix string) ([]string, error) {
	const doing = "list the traits"
	var list struct{ Traits []string }
	if err := c.service.Get(ctx, doing, "traits?name="+url.QueryEscape("startswith:"+prefix), &list); err != nil {
		return nil, err
	}
	if list.Traits == nil {
		return nil, c.service.Malformed(doing, "it contains no traits")
	}
	slices.Sort(list.Traits)
	return list.Traits, nil
}

// EnsureClass creates a custom resource class unless it exists.
func (c *Client) EnsureClass(ctx context.Context, name string) error {
	return c.ensure(ctx, "create resource class "+name, "resource_classes/"+url.PathEscape(name))
}

// DeleteClass deletes a custom resource class; a missing class is no error. It returns a
// Conflict fault while a provider has some of it.
func (c *Client) DeleteClass(ctx context.Context, name string) error {
	return c.delete(ctx, "delete resource class "+name, "resource_classes/"+url.PathEscape(name))
}

// ClassNames returns the existing resource classes that begin with prefix, sorted.
func (c *Client) ClassNames(ctx context.Context, prefix string) ([]string, error) {
	const doing = "list the resource classes"
	var list struct {
		Classes []struct{ Name string } `json:"resource_classes"`
	}
	if err := c.service.Get(ctx, doing, "resource_classes", &list); err != nil {
		return nil, err
	}
	if list.Classes == nil {
		return nil, c.service.Malformed(doing, "it contains no resource_classes")
	}
	names := []string{}
	for _, class := range list.Classes {
		if strings.HasPrefix(class.Name, prefix) {
			names = append(names, class.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// ensure creates the object at path; Placement answers 201, or 204 if it exists
// (placement/handlers/trait.py put_trait, resource_class.py update_resource_class).
func (c *Client) ensure(ctx context.Context, doing, path string) error {
	return c.service.Send(ctx, doing, http.MethodPut, path, nil, nil, http.StatusCreated, http.StatusNoContent)
}

func (c *Client) delete(ctx context.Context, doing, path string) error {
	return openstack.UnlessMissing(c.service.Send(ctx, doing, http.MethodDelete, path, nil, nil))
}

// ProviderNamed returns the id of the provider of that name, or "" if there is none.
func (c *Client) ProviderNamed(ctx context.Context, name string) (string, error) {
	ids, err := c.find(ctx, "find provider "+name, "name="+url.QueryEscape(name))
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return ids[0], nil
}

// ProvidersWith returns the ids of the providers with the trait; none if the trait does not
// exist.
func (c *Client) ProvidersWith(ctx context.Context, trait string) ([]string, error) {
	ids, err := c.find(ctx, "find the providers with trait "+trait, "required="+url.QueryEscape(trait))
	if fault.Is(err, fault.Invalid) && strings.Contains(err.Error(), "No such trait") {
		return nil, nil // placement/objects/trait.py ids_from_names
	}
	return ids, err
}

// ProvidersIn returns the ids of the members of the aggregate with the UUID in Placement.
func (c *Client) ProvidersIn(ctx context.Context, aggregate string) ([]string, error) {
	return c.find(ctx, "find the providers in aggregate "+aggregate, "member_of="+url.QueryEscape(aggregate))
}

// AggregatesOf returns the UUIDs of the aggregates of a provider in Placement.
func (c *Client) AggregatesOf(ctx context.Context, provider string) ([]string, error) {
	doing := "read the aggregates of provider " + provider
	var body struct{ Aggregates []string }
	if err := c.service.Get(ctx, doing, "resource_providers/"+provider+"/aggregates", &body); err != nil {
		return nil, err
	}
	if body.Aggregates == nil {
		return nil, c.service.Malformed(doing, "it contains no aggregates")
	}
	return body.Aggregates, nil
}

// find returns the ids of the providers that a query selects.
func (c *Client) find(ctx context.Context, doing, query string) ([]string, error) {
	var list struct {
		Providers []struct{ UUID string } `json:"resource_providers"`
	}
	if err := c.service.Get(ctx, doing, "resource_providers?"+query, &list); err != nil {
		return nil, err
	}
	if list.Providers == nil {
		return nil, c.service.Malformed(doing, "it contains no resource_providers")
	}
	ids := make([]string, len(list.Providers))
	for i, p := range list.Providers {
		ids[i] = p.UUID
	}
	return ids, nil
}
