// SPDX-License-Identifier: Apache-2.0

package nova

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// flavor is a flavor in Nova's JSON, by itself or, under other names, in a server.
type flavor struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Original   string            `json:"original_name"` // in a server
	VCPUs      int64             `json:"vcpus"`
	MemoryMB   int64             `json:"ram"`
	DiskGB     int64             `json:"disk"`
	SwapMB     megabytes         `json:"swap"`
	Ephemeral  int64             `json:"OS-FLV-EXT-DATA:ephemeral"`
	Ephemeral2 int64             `json:"ephemeral"` // in a server
	Public     bool              `json:"os-flavor-access:is_public"`
	ExtraSpecs map[string]string `json:"extra_specs"`
}

// megabytes is an amount that Nova writes as "" instead of 0 before 2.75.
type megabytes int64

// UnmarshalJSON reads a number, or Nova's "" for 0.
func (m *megabytes) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if text == `""` {
		*m = 0
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	*m = megabytes(n)
	return err
}

// mostOfAny is more of a resource than any flavor has (nova/db/constants.py, MAX_INT).
const mostOfAny = math.MaxInt32

// known converts the flavor to Almanac's type. fromVolume means that the root disk is not on
// the host.
func (f flavor) known(fromVolume bool) (inventory.Flavor, error) {
	for _, amount := range []int64{f.VCPUs, f.MemoryMB, f.DiskGB, int64(f.SwapMB), f.Ephemeral, f.Ephemeral2} {
		if amount < 0 || amount > mostOfAny {
			return inventory.Flavor{}, errors.New("a flavor has an impossible amount of a resource")
		}
	}
	root := f.DiskGB
	if fromVolume {
		root = 0
	}
	swap := (int64(f.SwapMB) + 1023) / 1024
	one := inventory.Flavor{
		ID: f.ID, Name: f.Name + f.Original, Public: f.Public, ExtraSpecs: maps.Clone(f.ExtraSpecs),
		Resources: resource.Vector{VCPUs: f.VCPUs, MemoryMB: f.MemoryMB, DiskGB: root + f.Ephemeral + f.Ephemeral2 + swap},
	}
	if one.Name == "" {
		return inventory.Flavor{}, errors.New("a flavor has no name")
	}
	overrideResources(&one)
	return one, nil
}

// overrideResources applies the extra specs resources:CLASS=n, with which a flavor requests
// other amounts from Placement than its shape contains (nova/scheduler/utils.py,
// ResourceRequest). Those of numbered groups add up.
func overrideResources(f *inventory.Flavor) {
	replaced := map[string]int64{}
	for key, value := range f.ExtraSpecs {
		group, class, ok := strings.Cut(key, ":")
		n, err := strconv.ParseInt(value, 10, 32)
		if ok && strings.HasPrefix(group, "resources") && err == nil && n >= 0 {
			replaced[class] += n
		}
	}
	r := &f.Resources
	_, shared := replaced["VCPU"]
	_, pinned := replaced["PCPU"]
	if shared || pinned {
		r.VCPUs = replaced["VCPU"] + replaced["PCPU"]
	}
	if n, ok := replaced["MEMORY_MB"]; ok {
		r.MemoryMB = n
	}
	if n, ok := replaced["DISK_GB"]; ok {
		r.DiskGB = n
	}
	for class, n := range replaced {
		if strings.HasPrefix(class, "CUSTOM_") && n > 0 {
			if r.Custom == nil {
				r.Custom = map[string]int64{}
			}
			r.Custom[class] = n
		}
	}
}

// FlavorAs returns the flavor with the id, as the owner of the token sees it, and its JSON in Nova's
// answer, without links (GET /flavors/{id}, extra specs since 2.61). A flavor that the owner of the
// token may not use is a NotFound fault.
func (c *Client) FlavorAs(ctx context.Context, token, id string) (f inventory.Flavor, text string, err error) {
	doing := "show flavor " + id
	var body struct {
		Flavor map[string]json.RawMessage `json:"flavor"`
	}
	if err := c.service.Get(openstack.As(ctx, token), doing, flavorPath(id), &body); err != nil {
		return f, "", err
	}
	delete(body.Flavor, "links")
	raw, err := json.Marshal(body.Flavor)
	if err != nil {
		return f, "", c.service.Malformed(doing, "%w", err)
	}
	var read flavor
	if err := json.Unmarshal(raw, &read); err != nil {
		return f, "", c.service.Malformed(doing, "%w", err)
	}
	if f, err = read.known(false); err == nil && f.ID == "" {
		err = errors.New("it contains no flavor")
	}
	if err != nil {
		return f, "", c.service.Malformed(doing, "%w", err)
	}
	return f, string(raw), nil
}

// Flavors returns all flavors, including private ones, with their extra specs (GET
// /flavors/detail, nova/api/openstack/compute/flavors.py; extra specs since 2.61).
func (c *Client) Flavors(ctx context.Context) ([]inventory.Flavor, error) {
	const doing = "list the flavors"
	var all []inventory.Flavor
	err := c.paged(doing, "flavors/detail", url.Values{"is_public": {"None"}}, func(path string) (string, bool, error) {
		var body struct {
			Flavors []flavor `json:"flavors"`
			Links   []link   `json:"flavors_links"`
		}
		if err := c.service.Get(ctx, doing, path, &body); err != nil {
			return "", false, err
		}
		if body.Flavors == nil {
			return "", false, c.service.Malformed(doing, "it contains no list of flavors")
		}
		last := ""
		for _, f := range body.Flavors {
			one, err := f.known(false)
			if err == nil && f.ID == "" {
				err = errors.New("a flavor has no id")
			}
			if err != nil {
				return "", false, c.service.Malformed(doing, "%w", err)
			}
			all, last = append(all, one), f.ID
		}
		return last, hasNext(body.Links), nil
	})
	return all, err
}
