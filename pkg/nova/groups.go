// SPDX-License-Identifier: Apache-2.0

package nova

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// NamedGroup is a server group.
type NamedGroup struct {
	Name string
	placing.Group
}

// group is a server group in Nova's JSON, which has one policy since 2.64.
type group struct {
	ID, Name, Policy string
	Members          []string
	Rules            struct {
		MaxPerHost int `json:"max_server_per_host"`
	}
}

// ServerGroups returns the server groups of all projects, without the hosts of their members.
func (c *Client) ServerGroups(ctx context.Context) ([]placing.Group, error) {
	named, err := c.NamedGroups(ctx)
	var all []placing.Group
	for _, g := range named {
		all = append(all, g.Group)
	}
	return all, err
}

// NamedGroups returns what ServerGroups does, with the names (GET /os-server-groups,
// nova/api/openstack/compute/server_groups.py).
func (c *Client) NamedGroups(ctx context.Context) ([]NamedGroup, error) {
	const doing = "list the server groups"
	var all []NamedGroup
	seen := map[string]bool{} // a group may move from one page to the next during the reading
	for read, page := 0, 0; page < mostPages; page++ {
		query := url.Values{"all_projects": {"True"}, "limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(read)}}
		var body struct {
			Groups []group `json:"server_groups"`
		}
		if err := c.service.Get(ctx, doing, "os-server-groups?"+query.Encode(), &body); err != nil {
			return nil, err
		}
		if body.Groups == nil {
			return nil, c.service.Malformed(doing, "it contains no list of groups")
		}
		if len(body.Groups) == 0 {
			return all, nil
		}
		read += len(body.Groups)
		for _, g := range body.Groups {
			if !seen[g.ID] {
				seen[g.ID] = true
				all = append(all, NamedGroup{g.Name, placing.Group{ID: g.ID, Policy: g.Policy, Members: g.Members, MaxPerHost: g.Rules.MaxPerHost}})
			}
		}
	}
	return nil, c.service.Malformed(doing, "its list does not end")
}

// GroupNames returns the names of the server groups of all projects, by their ids.
func (c *Client) GroupNames(ctx context.Context) (map[string]string, error) {
	named, err := c.NamedGroups(ctx)
	if err != nil {
		return nil, err
	}
	names := make(map[string]string, len(named))
	for _, g := range named {
		names[g.ID] = g.Name
	}
	return names, nil
}

// CreateGroupAs creates a server group in the project of the owner of a token. Nova creates none for
// another project. An exceeded quota is a Denied fault.
func (c *Client) CreateGroupAs(ctx context.Context, token, name, policy string) (id string, err error) {
	doing := "create server group " + name
	wanted := map[string]any{"server_group": map[string]string{"name": name, "policy": policy}}
	var made struct {
		Group group `json:"server_group"`
	}
	err = c.service.Send(openstack.As(ctx, token), doing, http.MethodPost, "os-server-groups", wanted, &made, http.StatusOK)
	if err == nil && made.Group.ID == "" {
		err = c.service.Malformed(doing, "it contains no group")
	}
	return made.Group.ID, err
}

// DeleteGroup deletes a server group of any project. A missing group is no error. Its servers stay.
func (c *Client) DeleteGroup(ctx context.Context, id string) error {
	return openstack.UnlessMissing(c.service.Send(ctx, "delete server group "+id, http.MethodDelete, "os-server-groups/"+url.PathEscape(id), nil, nil,
		http.StatusNoContent))
}
