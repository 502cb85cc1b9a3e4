package placement

import (
	"context"
	"net/url"

	"golang.org/x/sync/errgroup"
)

// Held is what a provider has and what is taken of it, by resource class.
type Held struct {
	Provider
	Inventories map[string]Inventory
	Used        map[string]int64
	// Consumers are what each consumer has of it, by the consumer's id, as Client.Allocations
	// gives it. Used is their sum.
	Consumers map[string]map[string]int64
}

// Sum gives what consumers have together, by resource class.
func Sum(consumers map[string]map[string]int64) map[string]int64 {
	used := map[string]int64{}
	for _, amounts := range consumers {
		for class, amount := range amounts {
			used[class] += amount
		}
	}
	return used
}

// readsAtOnce is how many providers of a tree are read at the same time.
const readsAtOnce = 8

// Tree gives what the provider with the id root has, and each below it, by two calls for
// each and one for all. It gives none where there is no such provider.
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
