package nova

import (
	"context"
	"net/url"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/placing"
)

// ServerGroups returns the server groups of all projects, without the hosts of their members
// (GET /os-server-groups, nova/api/openstack/compute/server_groups.py; one policy each since
// 2.64).
func (c *Client) ServerGroups(ctx context.Context) ([]placing.Group, error) {
	const doing = "list the server groups"
	var all []placing.Group
	seen := map[string]bool{} // a group may move from one page to the next during the reading
	for read, page := 0, 0; page < mostPages; page++ {
		query := url.Values{"all_projects": {"True"}, "limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(read)}}
		var body struct {
			Groups []struct {
				ID, Policy string
				Members    []string
				Rules      struct {
					MaxPerHost int `json:"max_server_per_host"`
				}
			} `json:"server_groups"`
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
				all = append(all, placing.Group{ID: g.ID, Policy: g.Policy, Members: g.Members, MaxPerHost: g.Rules.MaxPerHost})
			}
		}
	}
	return nil, c.service.Malformed(doing, "its list does not end")
}
