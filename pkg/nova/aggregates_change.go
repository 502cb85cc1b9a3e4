package nova

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// CreateAggregate makes an aggregate without an availability zone; where there is one
// of that name, it gives that one. Its metadata has all of metadata afterwards.
func (c *Client) CreateAggregate(ctx context.Context, name string, metadata map[string]string) (inventory.Aggregate, error) {
	doing := "create aggregate " + name
	var body struct {
		Aggregate aggregate `json:"aggregate"`
	}
	err := c.service.Change(ctx, doing, func(ctx context.Context, g *gophercloud.ServiceClient) error {
		wanted := map[string]any{"aggregate": map[string]string{"name": name}}
		return discard(g.Post(ctx, g.ServiceURL("os-aggregates"), wanted, &body, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}}))
	})
	var made inventory.Aggregate
	if err == nil {
		if made, err = body.Aggregate.known(); err != nil {
			return made, c.service.Senseless(doing, "%w", err)
		}
	} else { // it may be there already, or another makes it at the same time
		var look error
		if made, look = c.AggregateNamed(ctx, name); look != nil {
			return made, err
		}
	}
	return made, c.SetMetadata(ctx, made, metadata, nil)
}

// AggregateNamed fails with a NotFound fault where there is none of that name.
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

// SetMetadata sets the keys of set in the metadata of an aggregate and deletes those
// of remove; others stay.
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

// AddHost enters a host in an aggregate. That it is there already is no error.
//
// Nova enters its provider in the same aggregate of Placement too, and does not tell
// where that fails (nova/compute/api.py add_host_to_aggregate).
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

// attempts is how often Nova is asked to take a host out of an aggregate, which it
// refuses while others change the host's provider in Placement.
const attempts = 3

// RemoveHost takes a host out of an aggregate. That it is not there, or that there is
// no such aggregate, is no error.
func (c *Client) RemoveHost(ctx context.Context, a inventory.Aggregate, host string) error {
	doing := fmt.Sprintf("remove host %s from %s", host, called(a))
	var err error
	for range attempts {
		err = c.aggregateAction(ctx, doing, a, "remove_host", map[string]string{"host": host})
		if err == nil {
			return nil
		}
		// Nova says 404 for a host that it does not know, too, though the aggregate may
		// have it.
		if there, known, look := c.hasHost(ctx, doing, a, host); look == nil && (!known || !there) {
			return nil
		}
		if !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return err
}

// hasHost says whether an aggregate has a host, and whether there is the aggregate.
func (c *Client) hasHost(ctx context.Context, doing string, a inventory.Aggregate, host string) (there, known bool, err error) {
	var found struct{ Aggregate struct{ Hosts []string } }
	err = c.service.Get(ctx, doing, aggregatePath(a), &found)
	if fault.Is(err, fault.NotFound) {
		return false, false, nil
	}
	return slices.Contains(found.Aggregate.Hosts, host), err == nil, err
}

// DeleteAggregate deletes an aggregate. That there is none is no error; it fails with
// a Conflict fault while it has hosts.
func (c *Client) DeleteAggregate(ctx context.Context, a inventory.Aggregate) error {
	doing := "delete " + called(a)
	err := c.service.Change(ctx, doing, func(ctx context.Context, g *gophercloud.ServiceClient) error {
		return discard(g.Delete(ctx, g.ServiceURL(aggregatePath(a)), &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK, http.StatusNoContent}}))
	})
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case fault.Is(err, fault.Invalid): // nova/compute/api.py delete_aggregate
		return fmt.Errorf("%s: %w", doing, &fault.Error{Kind: fault.Conflict, Message: "it still has hosts", Err: err})
	}
	return err
}

func (c *Client) aggregateAction(ctx context.Context, doing string, a inventory.Aggregate, action string, what any) error {
	return c.service.Change(ctx, doing, func(ctx context.Context, g *gophercloud.ServiceClient) error {
		return discard(g.Post(ctx, g.ServiceURL(aggregatePath(a), "action"), map[string]any{action: what}, nil,
			&gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}}))
	})
}

func aggregatePath(a inventory.Aggregate) string { return "os-aggregates/" + strconv.Itoa(a.ID) }

// called names an aggregate for messages.
func called(a inventory.Aggregate) string { return fmt.Sprintf("aggregate %s (%d)", a.Name, a.ID) }

// discard closes an answer in which nothing is read any more.
func discard(answer *http.Response, err error) error {
	if err == nil {
		answer.Body.Close()
	}
	return err
}
