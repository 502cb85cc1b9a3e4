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
		reads.Go(func() (err error) { held.Used, err = c.Usages(ctx, p.ID); return err })
	}
	return tree, reads.Wait()
}
