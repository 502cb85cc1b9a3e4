// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// bound limits the time of a request. The work continues if the client disconnects.
func (s *Server) bound(c *gin.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), s.RequestTimeout)
	defer cancel()
	c.Set(clientKey, c.Request.Context())
	c.Request = c.Request.WithContext(ctx)
	if s.draining.Load() {
		c.Header("Connection", "close")
	}
	c.Next()
}

// date tells the client the service's time.
func (s *Server) date(c *gin.Context) { c.Header("Date", s.Now().Time().UTC().Format(http.TimeFormat)) }

// measure records the request and its duration.
func (s *Server) measure(c *gin.Context) {
	begun := s.Monotonic()
	c.Next()
	method, route := c.Request.Method, c.FullPath()
	if route == "" {
		method, route = "none", "none" // keeps the number of label values small, whatever clients send
	}
	s.metrics.requests.WithLabelValues(method, route, strconv.Itoa(c.Writer.Status())).Inc()
	if s.turns[method+" "+route] == Streaming && c.Writer.Status() == http.StatusOK {
		return // its length says nothing of how long clients wait
	}
	s.metrics.seconds.WithLabelValues(method, route).Observe((s.Monotonic() - begun).Seconds())
}

// recover turns a panic into a 500 that contains only the request id.
func (s *Server) recover(c *gin.Context) {
	defer func() {
		if p := recover(); p != nil {
			s.call(c).Fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	c.Next()
}

// sameOrigin refuses requests that a web page of another site sends through a user's browser.
func (s *Server) sameOrigin(c *gin.Context) {
	if err := s.origins.Check(c.Request); err != nil {
		s.call(c).Fail(&fault.Error{Kind: fault.Denied, Message: "pages of other sites may not change anything here", Err: err})
	}
}

// before runs the first steps of every request.
func (s *Server) before(c *gin.Context) { run(s.call(c), s.Before) }
