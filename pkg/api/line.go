// SPDX-License-Identifier: Apache-2.0

package api

import (
	"math"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/turns"
)

// longestLine is the largest number of requests of a project that may wait.
const longestLine = 256

// newLine returns the gate that limits the concurrent requests of each project to atOnce; nil,
// which means no limit, if atOnce is 0.
func newLine(atOnce int) *turns.Gate {
	if atOnce <= 0 {
		return nil
	}
	return turns.New(math.MaxInt, atOnce)
}

// inLine serves a limited number of requests of a caller at once, so that one project cannot use
// up the memory and the database connections that all share. Admins do not wait. The body arrives before
// the request is one of them, and the answer is sent when it no longer is: a client that stops sending
// or reading keeps none of its project's places.
func (s *server) inLine(c *gin.Context, serve func()) {
	caller := s.callerIn(c)
	served := s.receive(c, caller)
	defer served()
	whole := &wholeAnswer{ResponseWriter: c.Writer}
	c.Writer = whole
	func() {
		defer func() { c.Writer = whole.ResponseWriter }() // after a panic too: nothing has been sent
		s.serveInLine(c, caller, func() {
			served() // from now on the body is one of so many requests at once
			serve()
		})
	}()
	s.deliver(c, caller, whole.text.Bytes())
}

// serveInLine serves a request when its turn comes, or refuses it if too many of the caller's
// requests wait.
func (s *server) serveInLine(c *gin.Context, caller string, serve func()) {
	if s.line == nil || caller == "" {
		serve()
		return
	}
	if s.line.Waiting(caller) >= longestLine {
		s.limited(c, time.Second, "too many requests of "+whose(c)+" are waiting for an answer")
		return
	}
	ctx, end := awaited(c)
	err := s.line.Enter(ctx, caller)
	end()
	if err != nil {
		s.fail(c, &fault.Error{
			Kind: fault.Unavailable, Message: "other requests of " + whose(c) + " took too long; try again", RetryAfter: overloaded, Err: err,
		})
		return
	}
	defer s.line.Leave(caller)
	serve()
}
