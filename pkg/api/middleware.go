package api

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

const clientKey = "client"

// bound gives what is done for a request its time. What has begun is finished when
// the client hangs up. Nobody may keep c: gin uses it again.
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

// awaited returns a context for what need not begin once the client has gone. It also
// ends when the time of the request is over.
func awaited(c *gin.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(c.Request.Context())
	client := c.MustGet(clientKey).(context.Context)
	stop := context.AfterFunc(client, cancel)
	if client.Err() != nil {
		cancel() // AfterFunc takes its time
	}
	return ctx, func() {
		stop()
		cancel()
	}
}

// measure counts the request and its time.
func (s *server) measure(c *gin.Context) {
	begun := s.Monotonic()
	c.Next()
	method, route := c.Request.Method, c.FullPath()
	if route == "" {
		method, route = "none", "none" // whatever is sent, a label has few values
	}
	s.metrics.requests.WithLabelValues(method, route, strconv.Itoa(c.Writer.Status())).Inc()
	s.metrics.seconds.WithLabelValues(method, route).Observe((s.Monotonic() - begun).Seconds())
}

// recover turns a panic into a 500 that names the request id only.
func (s *server) recover(c *gin.Context) {
	defer func() {
		if p := recover(); p != nil {
			s.fail(c, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	c.Next()
}

// sameOrigin refuses what a page of another site sends through a visitor's browser.
func (s *server) sameOrigin(c *gin.Context) {
	if err := s.origins.Check(c.Request); err != nil {
		s.fail(c, &fault.Error{Kind: fault.Denied, Message: "a page of another site may not change anything here", Err: err})
	}
}
