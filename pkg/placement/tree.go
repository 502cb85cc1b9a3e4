package placement

import (
	"context"
	"net/url"

	"golang.org/x/sync/errgroup"
)

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
