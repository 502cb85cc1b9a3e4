// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// attempts is how often a change starts over after a concurrent one. One of them succeeds each
// time, so this is how many may change one provider at once.
const attempts = 10

// ChangeTraits adds the traits of add to a provider and removes those of remove; all others
// stay, including those that others set at the same time. It returns an Invalid fault if a
// trait of add does not exist.
func (c *Client) ChangeTraits(ctx context.Context, provider string, add, remove []string) error {
	type traits struct {
		Generation *int64   `json:"resource_provider_generation"`
		Traits     []string `json:"traits"`
	}
	return change(ctx, c, "set the traits of provider "+provider, "resource_providers/"+provider+"/traits",
		func(t *traits) (bool, error) {
			if t.Generation == nil || t.Traits == nil {
				return false, errors.New("it contains no traits")
			}
			merged := merge(t.Traits, add, remove)
			changed := len(merged) != len(t.Traits) || !contains(t.Traits, merged)
			t.Traits = merged
			return changed, nil
		})
}

// merge returns has and add without remove.
func merge(has, add, remove []string) []string {
	merged := []string{}
	for _, name := range slices.Concat(has, add) {
		if !slices.Contains(remove, name) && !slices.Contains(merged, name) {
			merged = append(merged, name)
		}
	}
	return merged
}

func contains(all, some []string) bool {
	return !slices.ContainsFunc(some, func(name string) bool { return !slices.Contains(all, name) })
}

// JoinAggregate adds a provider to the aggregate with the UUID, as Nova does when it adds a
// host (nova/compute/api.py add_host_to_aggregate, which does not report a failure).
func (c *Client) JoinAggregate(ctx context.Context, provider, aggregate string) error {
	type aggregates struct {
		Generation *int64   `json:"resource_provider_generation"`
		Aggregates []string `json:"aggregates"`
	}
	return change(ctx, c, "add provider "+provider+" to aggregate "+aggregate, "resource_providers/"+provider+"/aggregates",
		func(a *aggregates) (bool, error) {
			if a.Generation == nil || a.Aggregates == nil {
				return false, errors.New("it contains no aggregates")
			}
			if slices.Contains(a.Aggregates, aggregate) {
				return false, nil
			}
			a.Aggregates = append(a.Aggregates, aggregate)
			return true, nil
		})
}

// change reads the document at path, which contains the generation of its provider, edits it
// and writes it back, and starts over if someone else has changed the provider in between. edit
// reports whether there is something to write, or why the document is invalid.
func change[T any](ctx context.Context, c *Client, doing, path string, edit func(*T) (bool, error)) error {
	var err error
	for range attempts {
		var document T
		if err := c.service.Get(ctx, doing, path, &document); err != nil {
			return err
		}
		changed, senseless := edit(&document)
		if senseless != nil {
			return c.service.Malformed(doing, "%w", senseless)
		}
		if !changed {
			return nil
		}
		err = c.service.Send(ctx, doing, http.MethodPut, path, document, nil, http.StatusOK)
		if !overtaken(err) {
			return err
		}
	}
	return err
}

// overtaken reports whether another change of the provider came first. Placement answers 500 if
// it came during a change of traits (placement/handlers/trait.py
// update_traits_for_resource_provider does not catch ConcurrentUpdateDetected).
func overtaken(err error) bool {
	return code(err) == "placement.concurrent_update" || openstack.Status(err) == http.StatusInternalServerError
}

// code returns Placement's error code, or "".
func code(err error) string {
	if answer, ok := errors.AsType[*openstack.Answer](err); ok {
		return answer.Code
	}
	return ""
}
