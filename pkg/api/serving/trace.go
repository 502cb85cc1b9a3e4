// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/tracing"
)

// trace makes the request a step of a trace. The name and the facts have the route instead of the
// path, which can be a secret (feeds). Routes that are asked every few seconds, or last for hours, are not traced.
func (s *Server) trace(c *gin.Context) {
	if turn := s.turns[c.Request.Method+" "+c.FullPath()]; s.Tracer == nil || turn == "" || turn == Shared || turn == Streaming {
		return
	}
	ctx, end := s.Tracer.Request(c.Request.Context(), c.Request.Method+" "+c.FullPath(), c.GetHeader,
		slog.String("http.request.method", c.Request.Method), slog.String("http.route", c.FullPath()))
	c.Request = c.Request.WithContext(ctx)
	c.Next()
	tracing.Note(ctx, slog.String("request_id", c.GetString(requestIDKey)), slog.Int("http.response.status_code", c.Writer.Status()))
	if by, known := c.Get(askerKey); known {
		tracing.Note(ctx, slog.String("project", by.(*Asker).ProjectID))
	}
	switch status := c.Writer.Status(); {
	case status == http.StatusServiceUnavailable:
		end(&fault.Error{Kind: fault.Unavailable})
	case status >= http.StatusInternalServerError:
		end(&fault.Error{Kind: fault.Internal})
	default: // what the caller did wrong is no failure of the service
		end(nil)
	}
}
