// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"cmp"
	"context"
	"net/http"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Cloud is the simulated cloud.
type Cloud interface {
	Servers(ctx context.Context) (v1.DemoServers, error)
	// Create creates a server, and returns it when a host was chosen for it, or none was found.
	Create(ctx context.Context, user string, r v1.DemoServerRequest) (v1.DemoServer, error)
	// Delete begins to delete a server in the name of its project. It fails with a NotFound fault if
	// there is none.
	Delete(ctx context.Context, id string) error
}

// Demo serves the calls about the servers of a simulated cloud.
type Demo struct {
	// Cloud is nil if the cloud is not simulated.
	Cloud Cloud
}

// list handles GET /v1/demo/servers.
func (s Demo) list(c *serving.Call) (any, error) {
	return s.Cloud.Servers(c.Request.Context())
}

// longestName is the largest number of characters of the name of a server, as in Nova.
const longestName = 255

// create handles POST /v1/demo/servers.
func (s Demo) create(c *serving.Call) (any, error) {
	var r v1.DemoServerRequest
	if _, err := c.Body(&r, serving.AnyBody); err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(r.Name) > longestName {
		return nil, fault.Field("name", "has more than %d characters", longestName)
	}
	by := c.Asker()
	r.ProjectID = cmp.Or(r.ProjectID, by.ProjectID)
	made, err := s.Cloud.Create(c.Request.Context(), by.UserID, r)
	if err != nil {
		return nil, err
	}
	c.Status(http.StatusCreated)
	return made, nil
}

// remove handles DELETE /v1/demo/servers/{id}.
func (s Demo) remove(c *serving.Call) (any, error) {
	if err := s.Cloud.Delete(c.Request.Context(), c.PathID()); err != nil {
		return nil, err
	}
	return nil, nil
}
