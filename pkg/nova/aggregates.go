package nova

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
)

// aggregate is a host aggregate in Nova's JSON.
type aggregate struct {
	ID       int               `json:"id"`
	UUID     string            `json:"uuid"`
	Name     string            `json:"name"`
	Zone     *string           `json:"availability_zone"`
	Metadata map[string]string `json:"metadata"`
	Hosts    []string          `json:"hosts"`
}

// known converts the aggregate to Almanac's type.
func (a aggregate) known() (inventory.Aggregate, error) {
	if a.ID <= 0 || a.UUID == "" || a.Name == "" {
		return inventory.Aggregate{}, errors.New("an aggregate has no id, uuid or name")
	}
	one := inventory.Aggregate{
		ID: a.ID, UUID: a.UUID, Name: a.Name, Metadata: maps.Clone(a.Metadata), Hosts: slices.Sorted(slices.Values(a.Hosts)),
	}
	if a.Zone != nil {
		one.Zone = *a.Zone
	}
	return one, nil
}

// Aggregates returns the host aggregates, by ID (GET /os-aggregates,
// nova/api/openstack/compute/aggregates.py).
func (c *Client) Aggregates(ctx context.Context) ([]inventory.Aggregate, error) {
	const doing = "list the aggregates"
	var body struct {
		Aggregates []aggregate `json:"aggregates"`
	}
	if err := c.service.Get(ctx, doing, "os-aggregates", &body); err != nil {
		return nil, err
	}
	if body.Aggregates == nil {
		return nil, c.service.Malformed(doing, "it contains no list of aggregates")
	}
	all := make([]inventory.Aggregate, 0, len(body.Aggregates))
	for _, a := range body.Aggregates {
		one, err := a.known()
		if err != nil {
			return nil, c.service.Malformed(doing, "%w", err)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b inventory.Aggregate) int { return a.ID - b.ID })
	return all, nil
}
