package placement

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

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
