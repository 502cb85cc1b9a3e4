// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// Demo is the simulated cloud.
type Demo interface {
	Servers(ctx context.Context) (v1.DemoServers, error)
	// Create creates a server, and returns it when a host was chosen for it, or none was found.
	Create(ctx context.Context, user string, r v1.DemoServerRequest) (v1.DemoServer, error)
	// Delete begins to delete a server in the name of its project. It fails with a NotFound fault if
	// there is none.
	Delete(ctx context.Context, id string) error
}

// listDemoServers handles GET /v1/demo/servers.
func (s *server) listDemoServers(c *gin.Context) (any, error) {
	return s.Demo.Servers(c.Request.Context())
}

// createDemoServer handles POST /v1/demo/servers.
func (s *server) createDemoServer(c *gin.Context) (any, error) {
	var r v1.DemoServerRequest
	if _, err := s.body(c, &r, s.MaxBodyBytes); err != nil {
		return nil, err
	}
	by := asking(c)
	r.ProjectID = cmp.Or(r.ProjectID, by.ProjectID)
	made, err := s.Demo.Create(c.Request.Context(), by.UserID, r)
	if err != nil {
		return nil, err
	}
	c.Status(http.StatusCreated)
	return made, nil
}

// deleteDemoServer handles DELETE /v1/demo/servers/{id}.
func (s *server) deleteDemoServer(c *gin.Context) (any, error) {
	if err := s.Demo.Delete(c.Request.Context(), pathID(c)); err != nil {
		return nil, err
	}
	return nil, nil
}
