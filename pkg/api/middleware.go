package api

import (
	"context"
	"fmt"
	"regexp"
	"runtime/debug"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

const (
	requestIDHeader = "X-Openstack-Request-Id"
	requestIDKey    = "request id"
	callerKey       = "caller"
)

// globalID is the form in which oslo.middleware accepts a caller's request id
// (oslo_middleware/request_id.py).
var globalID = regexp.MustCompile(`^req-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}$`)

// identify gives the request its id and logs how it ended.
func (s *server) identify(c *gin.Context) {
	id := s.NewRequestID()
	c.Set(requestIDKey, id)
	c.Header(requestIDHeader, id)
	attributes := []any{"request_id", id, "method", c.Request.Method, "path", c.Request.URL.Path}
	if global := c.GetHeader(requestIDHeader); globalID.MatchString(global) {
		attributes = append(attributes, "global_request_id", global)
	}
	c.Next()
	s.Log.Info("answered", append(attributes, "status", c.Writer.Status())...)
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

// authenticate finds out who is asking, and for which project: without one every
// project's reservations would be the caller's.
func (s *server) authenticate(c *gin.Context) {
	caller, err := s.Authenticator.Authenticate(c.Request)
	if err == nil && caller.ProjectID == "" {
		err = fault.New(fault.Denied, "your token is for no project; get one for the project that the reservations belong to")
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Set(callerKey, caller)
}

func (s *server) adminOnly(c *gin.Context) {
	if !caller(c).Admin {
		s.fail(c, fault.New(fault.Denied, "only an admin may do this"))
	}
}

// work is the context of what is done for a request. What has begun is finished
// when the client hangs up. Nobody else may keep c: gin uses it again.
func work(c *gin.Context) context.Context { return context.WithoutCancel(c.Request.Context()) }

func caller(c *gin.Context) booking.Caller {
	return c.MustGet(callerKey).(booking.Caller)
}
