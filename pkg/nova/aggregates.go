// SPDX-License-Identifier: Apache-2.0

package nova

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
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

// CreateAggregate creates an aggregate without an availability zone, or returns the one that
// already has the name. In both cases its metadata contains all of metadata afterward.
func (c *Client) CreateAggregate(ctx context.Context, name string, metadata map[string]string) (inventory.Aggregate, error) {
	doing := "create aggregate " + name
	var body struct {
		Aggregate aggregate `json:"aggregate"`
	}
	wanted := map[string]any{"aggregate": map[string]string{"name": name}}
	err := c.service.Send(ctx, doing, http.MethodPost, "os-aggregates", wanted, &body, http.StatusOK)
	var made inventory.Aggregate
	if err == nil {
		if made, err = body.Aggregate.known(); err != nil {
			return made, c.service.Malformed(doing, "%w", err)
		}
	} else { // it may exist already, or another replica creates it at the same time
		var look error
		if made, look = c.AggregateNamed(ctx, name); look != nil {
			return made, err
		}
	}
	return made, c.SetMetadata(ctx, made, metadata, nil)
}

// AggregateNamed returns the aggregate with that name, or a NotFound fault.
func (c *Client) AggregateNamed(ctx context.Context, name string) (inventory.Aggregate, error) {
	all, err := c.Aggregates(ctx)
	if err != nil {
		return inventory.Aggregate{}, err
	}
	i := slices.IndexFunc(all, func(a inventory.Aggregate) bool { return a.Name == name })
	if i < 0 {
		return inventory.Aggregate{}, fault.New(fault.NotFound, "Nova has no aggregate %s", name)
	}
	return all[i], nil
}

// SetMetadata sets the keys of set in the metadata of an aggregate and deletes those of remove;
// others stay.
func (c *Client) SetMetadata(ctx context.Context, a inventory.Aggregate, set map[string]string, remove []string) error {
	if len(set)+len(remove) == 0 {
		return nil
	}
	metadata := map[string]any{}
	for key, value := range set {
		metadata[key] = value
	}
	for _, key := range remove {
		metadata[key] = nil
	}
	return c.aggregateAction(ctx, "set metadata of "+called(a), a, "set_metadata", map[string]any{"metadata": metadata})
}

// AddHost adds a host to an aggregate. A host that is already there is no error.
//
// Nova adds its provider to the same aggregate in Placement too, and does not report a failure
// of that (nova/compute/api.py add_host_to_aggregate).
func (c *Client) AddHost(ctx context.Context, a inventory.Aggregate, host string) error {
	doing := fmt.Sprintf("add host %s to %s", host, called(a))
	err := c.aggregateAction(ctx, doing, a, "add_host", map[string]string{"host": host})
	if fault.Is(err, fault.Conflict) {
		if there, _, look := c.hasHost(ctx, doing, a, host); look == nil && there {
			return nil
		}
	}
	return err
}

// attempts bounds the requests to remove a host from an aggregate, which Nova refuses while
// others change the host's provider in Placement.
const attempts = 3

// RemoveHost removes a host from an aggregate. A missing host or aggregate is no error.
func (c *Client) RemoveHost(ctx context.Context, a inventory.Aggregate, host string) error {
	doing := fmt.Sprintf("remove host %s from %s", host, called(a))
	var err error
	for range attempts {
		err = c.aggregateAction(ctx, doing, a, "remove_host", map[string]string{"host": host})
		if err == nil {
			return nil
		}
		// Nova also answers 404 for a host that it does not know, although the aggregate may
		// contain it.
		if there, known, look := c.hasHost(ctx, doing, a, host); look == nil && (!known || !there) {
			return nil
		}
		if !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return err
}

// hasHost reports whether an aggregate contains a host, and whether the aggregate exists.
func (c *Client) hasHost(ctx context.Context, doing string, a inventory.Aggregate, host string) (there, known bool, err error) {
	var found struct{ Aggregate struct{ Hosts []string } }
	err = c.service.Get(ctx, doing, aggregatePath(a), &found)
	if fault.Is(err, fault.NotFound) {
		return false, false, nil
	}
	return slices.Contains(found.Aggregate.Hosts, host), err == nil, err
}

// DeleteAggregate deletes an aggregate. A missing aggregate is no error; one with hosts is a
// Conflict fault.
func (c *Client) DeleteAggregate(ctx context.Context, a inventory.Aggregate) error {
	doing := "delete " + called(a)
	err := c.service.Send(ctx, doing, http.MethodDelete, aggregatePath(a), nil, nil, http.StatusOK, http.StatusNoContent)
	if fault.Is(err, fault.Invalid) { // nova/compute/api.py delete_aggregate
		return fmt.Errorf("%s: %w", doing, &fault.Error{Kind: fault.Conflict, Message: "it still has hosts", Err: err})
	}
	return openstack.UnlessMissing(err)
}

func (c *Client) aggregateAction(ctx context.Context, doing string, a inventory.Aggregate, action string, what any) error {
	return c.service.Send(ctx, doing, http.MethodPost, aggregatePath(a)+"/action", map[string]any{action: what}, nil, http.StatusOK)
}

func aggregatePath(a inventory.Aggregate) string { return "os-aggregates/" + strconv.Itoa(a.ID) }

// called returns the aggregate's name for messages.
func called(a inventory.Aggregate) string { return fmt.Sprintf("aggregate %s (%d)", a.Name, a.ID) }
