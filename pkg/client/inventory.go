// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

const (
	hostsPath      = "/v1/hosts"
	propertiesPath = "/v1/properties"
)

// HostFilter selects hosts; a zero field selects all.
type HostFilter struct {
	HostProperties string // JSON
	// Unknown, if not nil, receives the properties of the filter that no host has.
	Unknown  func(names []string)
	PageSize int // 0 is Almanac's default
}

// Hosts iterates over the hosts, sorted by name, as pages does.
func (c *Client) Hosts(ctx context.Context, f HostFilter) iter.Seq2[v1.Host, error] {
	query := url.Values{}
	set(query, "host_properties", f.HostProperties)
	return pages(ctx, c, hostsPath, query, f.PageSize, func(page v1.HostList) ([]v1.Host, string) {
		if f.Unknown != nil && len(page.UnknownProperties) > 0 {
			f.Unknown(page.UnknownProperties)
		}
		return page.Hosts, string(page.Next)
	})
}

// Host returns one host.
func (c *Client) Host(ctx context.Context, name string) (v1.Host, error) {
	return answer[v1.Host](ctx, c, call{method: http.MethodGet, path: hostsPath, name: &name})
}

// ChangeHost sets the properties of a host, and removes those that are nil. It adds the host
// to the pool or removes it, and sets its power state or returns it to the inventory source.
func (c *Client) ChangeHost(ctx context.Context, name string, change v1.HostChange) (v1.Host, error) {
	return answer[v1.Host](ctx, c, call{method: http.MethodPatch, path: hostsPath, name: &name, body: change})
}

// Properties returns the properties that a filter may use.
func (c *Client) Properties(ctx context.Context) (v1.Properties, error) {
	return answer[v1.Properties](ctx, c, call{method: http.MethodGet, path: propertiesPath})
}

// ChangeProperty hides a property from users, or shows it to them.
func (c *Client) ChangeProperty(ctx context.Context, name string, change v1.PropertyChange) (v1.Property, error) {
	return answer[v1.Property](ctx, c, call{method: http.MethodPatch, path: propertiesPath, name: &name, body: change})
}
