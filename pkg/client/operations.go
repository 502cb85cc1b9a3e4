// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// Now returns the service's time.
func (c *Client) Now(ctx context.Context) (now time.Time, err error) {
	err = c.do(ctx, call{method: http.MethodGet, path: "/v1", at: &now})
	return now, err
}

// Examine returns the problems that the doctor finds. It changes nothing.
func (c *Client) Examine(ctx context.Context) (v1.Examination, error) {
	return answer[v1.Examination](ctx, c, call{method: http.MethodGet, path: "/v1/doctor"})
}

// Fix fixes the problems that can be fixed. With DryRun it only returns what it would do.
func (c *Client) Fix(ctx context.Context, treatment v1.Treatment) (v1.Examination, error) {
	return answer[v1.Examination](ctx, c, call{method: http.MethodPost, path: "/v1/doctor", body: treatment})
}

// Decisions returns the placement decisions about an instance or about a request ("req-…"),
// the newest first.
func (c *Client) Decisions(ctx context.Context, id string) (v1.Decisions, error) {
	return answer[v1.Decisions](ctx, c, call{method: http.MethodGet, path: "/v1/decisions", id: &id})
}

// ImageFilter selects images on hosts; a zero field selects all.
type ImageFilter struct {
	Image  string // id or name
	Host   string
	States []string
}

// Images returns the images on hosts and the transfers under way, sorted by name, id and host.
func (c *Client) Images(ctx context.Context, f ImageFilter) (v1.Images, error) {
	query := url.Values{}
	set(query, "image", f.Image)
	set(query, "host", f.Host)
	set(query, "state", strings.Join(f.States, ","))
	return answer[v1.Images](ctx, c, call{method: http.MethodGet, path: "/v1/images", query: query})
}

// FilterHosts returns which of the hosts a placement request may use.
func (c *Client) FilterHosts(ctx context.Context, question v1.FilterQuestion) (v1.FilterAnswer, error) {
	return answer[v1.FilterAnswer](ctx, c, call{method: http.MethodPost, path: "/v1/scheduler/filter", body: question})
}

// Health returns an error if Almanac does not answer, or reports why it cannot serve.
func (c *Client) Health(ctx context.Context) error {
	return c.do(ctx, call{method: http.MethodGet, path: "/healthcheck"})
}

// Readiness returns the state of each part of Almanac. Where some are not well it returns
// them too, with an error that has their reasons.
func (c *Client) Readiness(ctx context.Context) (v1.Readiness, error) {
	return answer[v1.Readiness](ctx, c, call{method: http.MethodGet, path: "/v1/readiness", reports: true})
}

// Feed returns the link with which a calendar program reads the project's reservations.
func (c *Client) Feed(ctx context.Context) (v1.Feed, error) {
	return answer[v1.Feed](ctx, c, call{method: http.MethodGet, path: "/v1/feed"})
}

// Version is a version of the API that an Almanac serves.
type Version struct {
	ID     string `json:"id"`     // such as "v1.0"
	Status string `json:"status"` // CURRENT, SUPPORTED or DEPRECATED
}

// Versions returns the versions of the API that Almanac serves.
func (c *Client) Versions(ctx context.Context) ([]Version, error) {
	found, err := answer[struct {
		Versions []Version `json:"versions"`
	}](ctx, c, call{method: http.MethodGet, path: "/"})
	return found.Versions, err
}

const packingRunsPath = "/v1/packing/runs"

// PlanPacking returns a plan of migrations. It moves nothing.
func (c *Client) PlanPacking(ctx context.Context, r v1.PackingRequest) (v1.PackingPlan, error) {
	return answer[v1.PackingPlan](ctx, c, call{method: http.MethodPost, path: "/v1/packing", body: r})
}

// ApplyPacking plans migrations and starts a run that carries them out.
func (c *Client) ApplyPacking(ctx context.Context, r v1.PackingRequest) (v1.PackingRun, error) {
	return answer[v1.PackingRun](ctx, c, call{method: http.MethodPost, path: packingRunsPath, body: r})
}

// PackingRuns returns the runs, the latest first. A limit of 0 is Almanac's default.
func (c *Client) PackingRuns(ctx context.Context, limit int) (v1.PackingRuns, error) {
	query := url.Values{}
	setNumber(query, "limit", limit)
	return answer[v1.PackingRuns](ctx, c, call{method: http.MethodGet, path: packingRunsPath, query: query})
}

// PackingRun returns one run.
func (c *Client) PackingRun(ctx context.Context, id string) (v1.PackingRun, error) {
	return answer[v1.PackingRun](ctx, c, call{method: http.MethodGet, path: packingRunsPath, id: &id})
}

// StopPacking ends a run after the move that is in progress, and returns the run.
func (c *Client) StopPacking(ctx context.Context, id string) (v1.PackingRun, error) {
	return answer[v1.PackingRun](ctx, c, call{method: http.MethodDelete, path: packingRunsPath, id: &id})
}

// PreemptibleFilter selects preemptible instances; a zero field selects all.
type PreemptibleFilter struct {
	Host, ProjectID string
	Limit           int // 0 means all
}

// Preemptible returns the preemptible instances: those that can be evicted, the cheapest
// first, then the others.
func (c *Client) Preemptible(ctx context.Context, f PreemptibleFilter) (v1.PreemptibleInstances, error) {
	query := url.Values{}
	set(query, "host", f.Host)
	set(query, "project_id", f.ProjectID)
	setNumber(query, "limit", f.Limit)
	return answer[v1.PreemptibleInstances](ctx, c, call{method: http.MethodGet, path: "/v1/preemptible", query: query})
}

// Size is the size of an instance: a flavor, by its name or id, or amounts.
type Size struct {
	Flavor                  string
	VCPUs, MemoryMB, DiskGB int
}

// PreemptionCosts returns which instances Almanac would evict from each host now for an
// instance of a size in a project. The hosts are in the order of preference, at most limit of
// them. An empty project is any; a limit of 0 is Almanac's default.
func (c *Client) PreemptionCosts(ctx context.Context, size Size, project string, limit int) (v1.PreemptionCosts, error) {
	query := url.Values{}
	set(query, "flavor", size.Flavor)
	setNumber(query, "vcpus", size.VCPUs)
	setNumber(query, "memory_mb", size.MemoryMB)
	setNumber(query, "disk_gb", size.DiskGB)
	set(query, "project_id", project)
	setNumber(query, "limit", limit)
	return answer[v1.PreemptionCosts](ctx, c, call{method: http.MethodGet, path: "/v1/preemptible/cost", query: query})
}
