package client

import (
	"context"
	"net/http"
	"net/url"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// PreemptibleFilter selects preemptible instances; a zero field selects all.
type PreemptibleFilter struct {
	Host, ProjectID string
	Limit           int // 0 is all
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
