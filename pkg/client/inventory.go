package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// HostFilter selects hosts; what is zero selects all.
type HostFilter struct {
	HostProperties string // JSON
	// Unknown is called with the properties of the filter that no host has, where
	// there are such and it is not nil.
	Unknown func(names []string)
	// PageSize is how many hosts to ask for at once; 0 leaves it to Almanac.
	PageSize int
}

// Hosts gives the hosts by name. Pages are fetched as they are needed. After an
// error nothing more is given.
func (c *Client) Hosts(ctx context.Context, f HostFilter) iter.Seq2[v1.Host, error] {
	query := url.Values{}
	set(query, "host_properties", f.HostProperties)
	return pages(query, f.PageSize, func(query url.Values) ([]v1.Host, string, error) {
		var page v1.HostList
		err := c.do(ctx, call{method: http.MethodGet, path: "/v1/hosts", query: query, into: &page})
		if f.Unknown != nil && len(page.UnknownProperties) > 0 {
			f.Unknown(page.UnknownProperties)
		}
		return page.Hosts, string(page.Next), err
	})
}

// Host gives one host.
func (c *Client) Host(ctx context.Context, name string) (v1.Host, error) {
	var found v1.Host
	path, err := member("/v1/hosts/", "name", name)
	if err == nil {
		err = c.do(ctx, call{method: http.MethodGet, path: path, into: &found})
	}
	return found, err
}

// ChangeHost sets properties, removes those that are nil, takes the host into the
// pool or out of it, and sets its power or leaves that to its source again.
func (c *Client) ChangeHost(ctx context.Context, name string, change v1.HostChange) (v1.Host, error) {
	var changed v1.Host
	path, err := member("/v1/hosts/", "name", name)
	if err == nil {
		err = c.do(ctx, call{method: http.MethodPatch, path: path, body: change, into: &changed})
	}
	return changed, err
}

// Calendar gives the claims on the named hosts, or on all, that lie between two
// times. A zero time is left to Almanac.
func (c *Client) Calendar(ctx context.Context, start, end time.Time, hosts ...string) (v1.Calendar, error) {
	query := url.Values{}
	setTime(query, "start", start)
	setTime(query, "end", end)
	if len(hosts) > 0 {
		query["host"] = hosts
	}
	var claims v1.Calendar
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/calendar", query: query, into: &claims})
	return claims, err
}

// Properties gives the properties that a filter may use.
func (c *Client) Properties(ctx context.Context) (v1.Properties, error) {
	var found v1.Properties
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/properties", into: &found})
	return found, err
}

// ChangeProperty hides a property from users, or shows it.
func (c *Client) ChangeProperty(ctx context.Context, name string, change v1.PropertyChange) (v1.Property, error) {
	var changed v1.Property
	path, err := member("/v1/properties/", "name", name)
	if err == nil {
		err = c.do(ctx, call{method: http.MethodPatch, path: path, body: change, into: &changed})
	}
	return changed, err
}
