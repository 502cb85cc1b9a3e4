package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// PreemptibleFilter selects preemptible instances; what is zero selects all.
type PreemptibleFilter struct {
	Host, ProjectID string
	Limit           int // of the first; 0 is all
}

// Preemptible gives the preemptible instances: those that can be evicted first, the
// cheapest first, then the others.
func (c *Client) Preemptible(ctx context.Context, f PreemptibleFilter) (v1.PreemptibleInstances, error) {
	query := url.Values{}
	set(query, "host", f.Host)
	set(query, "project_id", f.ProjectID)
	setNumber(query, "limit", f.Limit)
	var found v1.PreemptibleInstances
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/preemptible", query: query, into: &found})
	return found, err
}

// Size is what an instance takes: that of a flavor, by its name or id, or amounts.
type Size struct {
	Flavor                  string
	VCPUs, MemoryMB, DiskGB int
}

// PreemptionCosts gives, for an instance of that size in a project, which instances would
// have to leave each host now: at most so many hosts, in the order in which they would be
// chosen. An empty project is any; a limit of 0 is left to Almanac.
func (c *Client) PreemptionCosts(ctx context.Context, size Size, project string, limit int) (v1.PreemptionCosts, error) {
	query := url.Values{}
	set(query, "flavor", size.Flavor)
	setNumber(query, "vcpus", size.VCPUs)
	setNumber(query, "memory_mb", size.MemoryMB)
	setNumber(query, "disk_gb", size.DiskGB)
	set(query, "project_id", project)
	setNumber(query, "limit", limit)
	var found v1.PreemptionCosts
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/preemptible/cost", query: query, into: &found})
	return found, err
}

func setNumber(query url.Values, name string, n int) {
	if n != 0 {
		query.Set(name, strconv.Itoa(n))
	}
}
