package nova

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// ServerQuery says which servers; what is empty is any.
type ServerQuery struct {
	Project string // id
	Host    string // of nova-compute
	Status  string // as "ERROR"
	// ChangedSince gives those that changed at or after it, also those that are gone
	// since then: their status is DELETED.
	ChangedSince span.Instant
}

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
		values.Set("soft_deleted", "True") // they keep their place on the host
	}
	return values
}

// Server is an instance, and when Nova last changed it, by Nova's clock.
type Server struct {
	inventory.Instance
	Updated span.Instant
	// Image is the id in Glance of what it was made or rebuilt from; empty where its root
	// disk is a volume, or where that is not known.
	Image string
	// Fault is what Nova says went wrong with one that is in ERROR.
	Fault string
}

// Deleted says that the instance is gone for good.
func (s *Server) Deleted() bool { return s.Status == "DELETED" }

// Servers gives the servers of all projects (GET /servers/detail,
// nova/api/openstack/compute/servers.py), each once, in no order. Where a cell does not
// answer, and its servers are not known, it fails with an Unavailable fault.
//
// Nova leaves out the servers of such a cell, and says so only to who asks for neither
// pages nor filters (_is_cell_down_supported): its services tell whether one is away.
// Changes are asked for often, and their services only afterwards.
func (c *Client) Servers(ctx context.Context, q ServerQuery) ([]Server, error) {
	const doing = "list the servers"
	if q.ChangedSince == 0 {
		if _, err := c.services(ctx, doing, q.Host); err != nil {
			return nil, err
		}
	}
	all, err := c.servers(ctx, doing, q)
	if err != nil {
		return nil, err
	}
	if _, err := c.services(ctx, doing, q.Host); err != nil {
		return nil, err
	}
	return all, nil
}

// manyProjects is from how many projects on all servers of the cloud are listed at once.
const manyProjects = 20

// ServersOf gives the servers of some projects, as Servers does: of many by one list of
// the whole cloud, of which those of others are left out.
func (c *Client) ServersOf(ctx context.Context, projects []string) ([]Server, error) {
	const doing = "list the servers of some projects"
	if _, err := c.services(ctx, doing, ""); err != nil {
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
	if _, err := c.services(ctx, doing, ""); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s Server) bool { return !slices.Contains(projects, s.ProjectID) }), nil
}

func (c *Client) servers(ctx context.Context, doing string, q ServerQuery) ([]Server, error) {
	var all []Server
	place := map[string]int{} // a page may repeat what moved there from the one before
	err := c.paged(doing, "servers/detail", q.values(), func(path string) (string, bool, error) {
		var body struct {
			Servers []server `json:"servers"`
			Links   []link   `json:"servers_links"`
		}
		if err := c.service.Get(ctx, doing, path, &body); err != nil {
			return "", false, err
		}
		if body.Servers == nil {
			return "", false, c.service.Senseless(doing, "there is no list of servers in it")
		}
		last := ""
		for _, s := range body.Servers {
			one, err := s.known()
			if err != nil {
				return "", false, c.service.Senseless(doing, "%w", err)
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
