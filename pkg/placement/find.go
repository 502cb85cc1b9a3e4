package placement

import (
	"context"
	"net/url"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

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
