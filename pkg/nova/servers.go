// SPDX-License-Identifier: Apache-2.0

package nova

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// ServerQuery selects servers; an empty field matches any.
type ServerQuery struct {
	Project string // id
	Host    string // of nova-compute
	Status  string // such as "ERROR"
	// ChangedSince selects servers that changed at or after it, including those deleted since:
	// their status is DELETED.
	ChangedSince span.Instant
}

// values returns the query as parameters of GET /servers/detail.
func (q ServerQuery) values() url.Values {
	values := url.Values{"all_tenants": {"True"}}
	if q.Project != "" {
		values.Set("project_id", q.Project)
	}
	if q.Host != "" {
		values.Set("host", q.Host)
	}
	if q.Status != "" {
		values.Set("status", q.Status)
	}
	if q.ChangedSince != 0 {
		values.Set("changes-since", q.ChangedSince.Time().Format(time.RFC3339))
	} else {
		values.Set("soft_deleted", "True") // they keep their allocation on the host
	}
	return values
}

// Server is an instance with the time of its last change, by Nova's clock.
type Server struct {
	inventory.Instance
	Updated span.Instant
	// Image is the id in Glance of the image it was created or rebuilt from; empty if its root
	// disk is a volume, or if it is unknown.
	Image string
	// Fault is Nova's message about a server in ERROR.
	Fault string
}

// Deleted reports whether the instance is deleted for good.
func (s *Server) Deleted() bool { return s.Status == "DELETED" }

// Servers returns the servers of all projects (GET /servers/detail,
// nova/api/openstack/compute/servers.py), each once, in no order. It returns an Unavailable
// fault if a cell does not answer, whose servers are then unknown.
//
// Nova omits the servers of such a cell, and reports it only to requests without pages and
// filters (_is_cell_down_supported); the list of services reveals it. For changes, which are
// read often, the services are read only afterward.
func (c *Client) Servers(ctx context.Context, q ServerQuery) ([]Server, error) {
	const doing = "list the servers"
	if q.ChangedSince == 0 {
		if err := c.cellsAnswer(ctx, doing, q.Host); err != nil {
			return nil, err
		}
	}
	all, err := c.servers(ctx, doing, q)
	if err != nil {
		return nil, err
	}
	if err := c.cellsAnswer(ctx, doing, q.Host); err != nil {
		return nil, err
	}
	return all, nil
}

// manyProjects is the number of projects from which on ServersOf lists all servers of the cloud
// at once.
const manyProjects = 20

// ServersOf returns the servers of some projects, like Servers. For many projects it filters
// one list of the whole cloud.
func (c *Client) ServersOf(ctx context.Context, projects []string) ([]Server, error) {
	const doing = "list the servers of some projects"
	if err := c.cellsAnswer(ctx, doing, ""); err != nil {
		return nil, err
	}
	queries := []ServerQuery{{}}
	if len(projects) < manyProjects {
		queries = nil
		for _, project := range projects {
			queries = append(queries, ServerQuery{Project: project})
		}
	}
	var all []Server
	for _, q := range queries {
		found, err := c.servers(ctx, doing, q)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if err := c.cellsAnswer(ctx, doing, ""); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s Server) bool { return !slices.Contains(projects, s.ProjectID) }), nil
}

// servers returns the servers of all pages that the query selects, each once.
func (c *Client) servers(ctx context.Context, doing string, q ServerQuery) ([]Server, error) {
	var all []Server
	place := map[string]int{} // a page may repeat what moved there from the page before
	err := c.paged(doing, "servers/detail", q.values(), func(path string) (string, bool, error) {
		var body struct {
			Servers []server `json:"servers"`
			Links   []link   `json:"servers_links"`
		}
		if err := c.service.Get(ctx, doing, path, &body); err != nil {
			return "", false, err
		}
		if body.Servers == nil {
			return "", false, c.service.Malformed(doing, "it contains no list of servers")
		}
		last := ""
		for _, s := range body.Servers {
			one, err := s.known()
			if err != nil {
				return "", false, c.service.Malformed(doing, "%w", err)
			}
			if i, seen := place[one.ID]; seen {
				all[i] = one
			} else {
				place[one.ID] = len(all)
				all = append(all, one)
			}
			last = one.ID
		}
		return last, hasNext(body.Links), nil
	})
	return all, err
}

// Server returns the server with the id. A missing server is a NotFound fault, a cell that does
// not answer an Unavailable one.
func (c *Client) Server(ctx context.Context, id string) (Server, error) {
	doing := "show server " + id
	var body struct {
		Server *server `json:"server"`
	}
	if err := c.service.Get(ctx, doing, serverPath(id), &body); err != nil {
		return Server{}, err
	}
	if body.Server == nil {
		return Server{}, c.service.Malformed(doing, "it contains no server")
	}
	if body.Server.Status == "UNKNOWN" && body.Server.Flavor == nil {
		return Server{}, cellAway(doing)
	}
	one, err := body.Server.known()
	if err != nil {
		return Server{}, c.service.Malformed(doing, "%w", err)
	}
	return one, nil
}
