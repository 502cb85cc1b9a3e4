// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

const clientKey = "client"

// bound limits the time of a request. The work continues if the client disconnects. Nothing may use
// c after the request, because gin reuses it.
func (s *server) bound(c *gin.Context) {
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
func (s *server) date(c *gin.Context) { c.Header("Date", s.Now().Time().UTC().Format(http.TimeFormat)) }

// awaited returns a context for work that must not begin after the client has disconnected. It also
// ends with the time of the request.
func awaited(c *gin.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(c.Request.Context())
	client := c.MustGet(clientKey).(context.Context)
	stop := context.AfterFunc(client, cancel)
	if client.Err() != nil {
		cancel() // AfterFunc calls cancel in another goroutine, too late
	}
	return ctx, func() {
		stop()
		cancel()
	}
}

// measure records the request and its duration.
func (s *server) measure(c *gin.Context) {
	begun := s.Monotonic()
	c.Next()
	method, route := c.Request.Method, c.FullPath()
	if route == "" {
		method, route = "none", "none" // keeps the number of label values small, whatever clients send
	}
	s.metrics.requests.WithLabelValues(method, route, strconv.Itoa(c.Writer.Status())).Inc()
	if c.GetBool(streamKey) {
		return // its length says nothing of how long clients wait
	}
	s.metrics.seconds.WithLabelValues(method, route).Observe((s.Monotonic() - begun).Seconds())
}

// recover turns a panic into a 500 that contains only the request id.
func (s *server) recover(c *gin.Context) {
	defer func() {
		if p := recover(); p != nil {
			s.fail(c, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	c.Next()
}

// sameOrigin refuses requests that a web page of another site sends through a user's browser.
func (s *server) sameOrigin(c *gin.Context) {
	if err := s.origins.Check(c.Request); err != nil {
		s.fail(c, &fault.Error{Kind: fault.Denied, Message: "pages of other sites may not change anything here", Err: err})
	}
}
