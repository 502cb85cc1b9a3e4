// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

const (
	energyPath      = "/v1/energy"
	energyPlanPath  = "/v1/energy/plan"
	energyHostsPath = "/v1/energy/hosts"
)

// Energy returns the state of the energy controller.
func (c *Client) Energy(ctx context.Context) (v1.Energy, error) {
	return answer[v1.Energy](ctx, c, call{method: http.MethodGet, path: energyPath})
}

// ChangeEnergy sets modes, stops or resumes switching off, or resets the breaker.
func (c *Client) ChangeEnergy(ctx context.Context, change v1.EnergyChange) (v1.Energy, error) {
	return answer[v1.Energy](ctx, c, call{method: http.MethodPatch, path: energyPath, body: change})
}

// EnergyPlan returns the latest plan, with the hosts to switch.
func (c *Client) EnergyPlan(ctx context.Context) (v1.EnergyPlan, error) {
	return answer[v1.EnergyPlan](ctx, c, call{method: http.MethodGet, path: energyPlanPath})
}

// ApproveEnergyPlan allows the controller to carry out the plan with an id.
func (c *Client) ApproveEnergyPlan(ctx context.Context, id string) (v1.EnergyPlan, error) {
	return answer[v1.EnergyPlan](ctx, c, call{method: http.MethodPost, path: energyPlanPath, body: v1.EnergyApprove{Approve: id}})
}

// EnergyFilter selects hosts; a zero field selects all.
type EnergyFilter struct {
	Phases   []string
	PageSize int // 0 is Almanac's default
}

// EnergyHosts iterates over the hosts with their power, sorted by name, as pages does.
func (c *Client) EnergyHosts(ctx context.Context, f EnergyFilter) iter.Seq2[v1.EnergyHost, error] {
	query := url.Values{}
	set(query, "phase", strings.Join(f.Phases, ","))
	return pages(ctx, c, energyHostsPath, query, f.PageSize, func(page v1.EnergyHosts) ([]v1.EnergyHost, string) {
		return page.Hosts, string(page.Next)
	})
}

// EnergyHost returns one host with its history.
func (c *Client) EnergyHost(ctx context.Context, name string) (v1.EnergyHost, error) {
	return answer[v1.EnergyHost](ctx, c, call{method: http.MethodGet, path: energyHostsPath, name: &name})
}

// OrderPower sends a manual order to a host and returns the host. The controller carries the
// order out later.
func (c *Client) OrderPower(ctx context.Context, name string, order v1.EnergyOrder) (v1.EnergyHost, error) {
	return answer[v1.EnergyHost](ctx, c, call{method: http.MethodPost, path: energyHostsPath, name: &name, body: order})
}

// ForeseePower returns what a manual order would do now. It fails as OrderPower would, and
// orders nothing.
func (c *Client) ForeseePower(ctx context.Context, name string, order v1.EnergyOrder) (v1.EnergyForeseen, error) {
	return answer[v1.EnergyForeseen](ctx, c, call{method: http.MethodPost, path: energyHostsPath, name: &name, query: dryRun(), body: order})
}

// EnergyAudit returns the audit entries about a host, or about all hosts where host is empty,
// the latest first, as pages does. A page size of 0 is Almanac's default.
func (c *Client) EnergyAudit(ctx context.Context, host string, pageSize int) iter.Seq2[v1.EnergyEntry, error] {
	query := url.Values{}
	set(query, "host", host)
	return pagesBy(ctx, c, "before", "/v1/energy/audit", query, pageSize, func(page v1.EnergyAudit) ([]v1.EnergyEntry, string) {
		if page.Next == nil {
			return page.Entries, ""
		}
		return page.Entries, strconv.FormatInt(*page.Next, 10)
	})
}

// EnergyDemand returns how many hosts were in use since a time; a zero time is Almanac's
// default.
func (c *Client) EnergyDemand(ctx context.Context, from time.Time) (v1.EnergyDemands, error) {
	query := url.Values{}
	setTime(query, "from", from)
	return answer[v1.EnergyDemands](ctx, c, call{method: http.MethodGet, path: "/v1/energy/demand", query: query})
}
