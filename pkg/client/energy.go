package client

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// Energy gives how the energy controller is.
func (c *Client) Energy(ctx context.Context) (v1.Energy, error) {
	var found v1.Energy
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/energy", into: &found})
	return found, err
}

// ChangeEnergy sets modes, stops the switching off or lets it go on, or arms it again.
func (c *Client) ChangeEnergy(ctx context.Context, change v1.EnergyChange) (v1.Energy, error) {
	var changed v1.Energy
	err := c.do(ctx, call{method: http.MethodPatch, path: "/v1/energy", body: change, into: &changed})
	return changed, err
}

// EnergyPlan gives the last plan of which hosts should be switched.
func (c *Client) EnergyPlan(ctx context.Context) (v1.EnergyPlan, error) {
	var found v1.EnergyPlan
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/energy/plan", into: &found})
	return found, err
}

// ApproveEnergyPlan lets the plan with that id be carried out.
func (c *Client) ApproveEnergyPlan(ctx context.Context, id string) (v1.EnergyPlan, error) {
	var approved v1.EnergyPlan
	err := c.do(ctx, call{method: http.MethodPost, path: "/v1/energy/plan", body: v1.EnergyApprove{Approve: id}, into: &approved})
	return approved, err
}

// EnergyFilter selects hosts; what is zero selects all.
type EnergyFilter struct {
	Phases []string
	// PageSize is how many hosts to ask for at once; 0 leaves it to Almanac.
	PageSize int
}

// EnergyHosts gives the hosts with their power, by name. Pages are fetched as they are
// needed. After an error nothing more is given.
func (c *Client) EnergyHosts(ctx context.Context, f EnergyFilter) iter.Seq2[v1.EnergyHost, error] {
	query := url.Values{}
	set(query, "phase", strings.Join(f.Phases, ","))
	return pages(query, f.PageSize, func(query url.Values) ([]v1.EnergyHost, string, error) {
		var page v1.EnergyHosts
		err := c.do(ctx, call{method: http.MethodGet, path: "/v1/energy/hosts", query: query, into: &page})
		return page.Hosts, string(page.Next), err
	})
}

// EnergyHost gives one host with its history.
func (c *Client) EnergyHost(ctx context.Context, name string) (v1.EnergyHost, error) {
	var found v1.EnergyHost
	path, err := member("/v1/energy/hosts/", "name", name)
	if err == nil {
		err = c.do(ctx, call{method: http.MethodGet, path: path, into: &found})
	}
	return found, err
}

// OrderPower gives a manual order for a host, and the host as it is then: the order is
// carried out later.
func (c *Client) OrderPower(ctx context.Context, name string, order v1.EnergyOrder) (v1.EnergyHost, error) {
	var ordered v1.EnergyHost
	path, err := member("/v1/energy/hosts/", "name", name)
	if err == nil {
		err = c.do(ctx, call{method: http.MethodPost, path: path, body: order, into: &ordered})
	}
	return ordered, err
}

// ForeseePower says what a manual order for a host would come to now. It fails as OrderPower
// would, and orders nothing.
func (c *Client) ForeseePower(ctx context.Context, name string, order v1.EnergyOrder) (v1.EnergyForeseen, error) {
	var foreseen v1.EnergyForeseen
	path, err := member("/v1/energy/hosts/", "name", name)
	if err == nil {
		err = c.do(ctx, call{method: http.MethodPost, path: path, query: dryRun(), body: order, into: &foreseen})
	}
	return foreseen, err
}

// EnergyAudit gives the entries about a host, or about all, the latest first. Pages are
// fetched as they are needed; a size of 0 leaves theirs to Almanac. After an error nothing
// more is given.
func (c *Client) EnergyAudit(ctx context.Context, host string, size int) iter.Seq2[v1.EnergyEntry, error] {
	query := url.Values{}
	set(query, "host", host)
	return pages(query, size, func(query url.Values) ([]v1.EnergyEntry, string, error) {
		query = maps.Clone(query)
		set(query, "before", query.Get("marker"))
		query.Del("marker")
		var page v1.EnergyAudit
		err := c.do(ctx, call{method: http.MethodGet, path: "/v1/energy/audit", query: query, into: &page})
		next := ""
		if page.Next != nil {
			next = strconv.FormatInt(*page.Next, 10)
		}
		return page.Entries, next, err
	})
}

// EnergyDemand gives how many hosts were in use since a time; a zero one is left to
// Almanac.
func (c *Client) EnergyDemand(ctx context.Context, from time.Time) (v1.EnergyDemands, error) {
	query := url.Values{}
	setTime(query, "from", from)
	var found v1.EnergyDemands
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/energy/demand", query: query, into: &found})
	return found, err
}
