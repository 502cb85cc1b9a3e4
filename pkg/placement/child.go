// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// SetUnits sets the inventories of the child provider called name, of the provider with id
// parent, to the number of units of each resource class in units: a consumer can allocate one
// unit, and no unit twice. Other classes stay; 0 removes a class. SetUnits creates the provider
// for its first class and keeps it without any: Nova requests the allocations of every provider
// that it knows of a host during each build there (nova/compute/resource_tracker.py
// _update_to_placement), so builds would fail until it learns that one is gone.
//
// It returns a Conflict fault if instances still hold units of a class to remove, and an
// Invalid fault if a class does not exist.
func (c *Client) SetUnits(ctx context.Context, parent, name string, units map[string]int64) error {
	err := c.setUnits(ctx, parent, name, units)
	if fault.Is(err, fault.NotFound) { // deleted by another replica at this moment
		err = c.setUnits(ctx, parent, name, units)
	}
	return err
}

// setUnits sets how many units of each class the child provider of parent has, and creates the child if
// it is needed.
func (c *Client) setUnits(ctx context.Context, parent, name string, units map[string]int64) error {
	child, err := c.ProviderNamed(ctx, name)
	if err == nil && child == "" {
		if !wanted(units) {
			return nil
		}
		child, err = c.createChild(ctx, parent, name)
	}
	if err != nil {
		return err
	}
	if err = c.changeUnits(ctx, child, name, units); code(err) == "placement.inventory.inuse" {
		return fmt.Errorf("set the inventory of provider %s: %w", name,
			&fault.Error{Kind: fault.Conflict, Message: "instances still hold units of a class to remove", Err: err})
	}
	return err
}

// wanted reports whether one of the amounts is more than 0.
func wanted(units map[string]int64) bool {
	for _, n := range units {
		if n > 0 {
			return true
		}
	}
	return false
}

// createChild returns the id of the new provider, or of one that someone else has created in
// the meantime.
func (c *Client) createChild(ctx context.Context, parent, name string) (string, error) {
	doing := "create provider " + name
	var made struct{ UUID string }
	body := map[string]string{"name": name, "parent_provider_uuid": parent}
	err := c.service.Send(ctx, doing, http.MethodPost, "resource_providers", body, &made, http.StatusOK)
	if code(err) == "placement.duplicate_name" {
		return c.ProviderNamed(ctx, name)
	}
	if err == nil && made.UUID == "" {
		err = c.service.Malformed(doing, "it contains no uuid")
	}
	return made.UUID, err
}

type units struct {
	Total    int64   `json:"total"`
	Reserved int64   `json:"reserved"`
	MinUnit  int64   `json:"min_unit"`
	MaxUnit  int64   `json:"max_unit"`
	StepSize int64   `json:"step_size"`
	Ratio    float64 `json:"allocation_ratio"`
}

// DeleteProvider deletes the provider with the id, which must have no children and no
// allocations. A missing provider is no error.
func (c *Client) DeleteProvider(ctx context.Context, id string) error {
	return c.delete(ctx, "delete provider "+id, "resource_providers/"+id)
}

// changeUnits sets the amounts of classes of a provider, and removes those whose amount is 0. Other
// classes stay.
func (c *Client) changeUnits(ctx context.Context, child, name string, wanted map[string]int64) error {
	type inventories struct {
		Generation  *int64           `json:"resource_provider_generation"`
		Inventories map[string]units `json:"inventories"`
	}
	return change(ctx, c, "set the inventory of provider "+name, "resource_providers/"+child+"/inventories",
		func(i *inventories) (changed bool, err error) {
			if i.Generation == nil || i.Inventories == nil {
				return false, errors.New("it contains no inventories")
			}
			for class, n := range wanted {
				has, there := i.Inventories[class]
				want := units{Total: n, MinUnit: 1, MaxUnit: 1, StepSize: 1, Ratio: 1}
				switch {
				case n > 0 && has != want:
					i.Inventories[class], changed = want, true
				case n <= 0 && there:
					delete(i.Inventories, class)
					changed = true
				}
			}
			return changed, nil
		})
}

// Held is a provider with its inventories and used amounts, by resource class.
type Held struct {
	Provider
	Inventories map[string]Inventory
	Used        map[string]int64
	// Consumers are the allocations of each consumer, by the consumer's id, as
	// Client.Allocations returns them. Used is their sum.
	Consumers map[string]map[string]int64
}

// Sum returns the total of the consumers' allocations, by resource class.
func Sum(consumers map[string]map[string]int64) map[string]int64 {
	used := map[string]int64{}
	for _, amounts := range consumers {
		for class, amount := range amounts {
			used[class] += amount
		}
	}
	return used
}

// readsAtOnce bounds the concurrent reads of providers of a tree.
const readsAtOnce = 8

// Tree returns the provider with the id root and all providers below it, by two calls for each
// and one for all. It returns none if there is no such provider.
func (c *Client) Tree(ctx context.Context, root string) ([]Held, error) {
	providers, err := c.providers(ctx, "list the providers below "+root, "resource_providers?in_tree="+url.QueryEscape(root))
	if err != nil {
		return nil, err
	}
	tree := make([]Held, len(providers))
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(readsAtOnce)
	for i, p := range providers {
		held := &tree[i]
		held.Provider = p
		reads.Go(func() (err error) { held.Inventories, err = c.Inventories(ctx, p.ID); return err })
		reads.Go(func() (err error) {
			held.Consumers, err = c.Allocations(ctx, p.ID)
			held.Used = Sum(held.Consumers)
			return err
		})
	}
	return tree, reads.Wait()
}
