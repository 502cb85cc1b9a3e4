// SPDX-License-Identifier: Apache-2.0

package neutron

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/almanac-cloud/almanac/reservation/address"
)

// Network returns a network with its subnets; a missing network is a NotFound fault.
func (c *Client) Network(ctx context.Context, id string) (address.Network, error) {
	doing := "show network " + id
	var found struct {
		Network struct {
			ID       string `json:"id"`
			External bool   `json:"router:external"`
		} `json:"network"`
	}
	if err := c.service.Get(ctx, doing, "networks/"+url.PathEscape(id), &found); err != nil {
		return address.Network{}, err
	}
	if found.Network.ID == "" {
		return address.Network{}, c.service.Malformed(doing, "the network has no id")
	}
	n := address.Network{ID: found.Network.ID, External: found.Network.External}
	err := pages(ctx, c, "list the subnets of network "+id, "subnets", url.Values{"network_id": {id}}, func(s subnet) {
		n.Subnets = append(n.Subnets, s.subnet())
	})
	return n, err
}

// subnet is a subnet in Neutron's JSON.
type subnet struct {
	ID      string `json:"id"`
	CIDR    string `json:"cidr"`
	Gateway string `json:"gateway_ip"`
	Pools   []struct {
		Start string `json:"start"`
		End   string `json:"end"`
	} `json:"allocation_pools"`
}

// subnet returns Neutron's subnet with its allocation pools.
func (s subnet) subnet() address.Subnet {
	out := address.Subnet{ID: s.ID, CIDR: s.CIDR, Gateway: s.Gateway}
	for _, p := range s.Pools {
		out.Pools = append(out.Pools, address.Range{First: p.Start, Last: p.End})
	}
	return out
}

const (
	pageSize = 500
	// mostPages bounds a list that a proxy repeats forever.
	mostPages = 200
)

// pages reads a list page by page, and calls use for each item.
func pages[Item any](ctx context.Context, c *Client, doing, list string, query url.Values, use func(Item)) error {
	query.Set("limit", strconv.Itoa(pageSize))
	for range mostPages {
		var page map[string]json.RawMessage
		if err := c.service.Get(ctx, doing, list+"?"+query.Encode(), &page); err != nil {
			return err
		}
		var items []Item
		if err := json.Unmarshal(page[list], &items); err != nil || items == nil {
			return c.service.Malformed(doing, "it contains no list of %s", list)
		}
		for _, item := range items {
			use(item)
		}
		marker, err := following(page[list+"_links"])
		if err != nil {
			return c.service.Malformed(doing, "%v", err)
		}
		if marker == "" {
			return nil
		}
		query.Set("marker", marker)
	}
	return c.service.Malformed(doing, "its list does not end")
}

// following returns the marker of the page that follows, from the links of a page; empty if it is the
// last.
func following(raw json.RawMessage) (marker string, err error) {
	if raw == nil {
		return "", nil
	}
	var links []struct{ Rel, Href string }
	if err := json.Unmarshal(raw, &links); err != nil {
		return "", fmt.Errorf("its links are malformed: %w", err)
	}
	for _, l := range links {
		if l.Rel != "next" {
			continue
		}
		next, err := url.Parse(l.Href)
		if err != nil {
			return "", fmt.Errorf("the link to the next page is malformed: %w", err)
		}
		return next.Query().Get("marker"), nil
	}
	return "", nil
}
