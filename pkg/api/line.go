// SPDX-License-Identifier: Apache-2.0

package api

import (
	"math"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/turns"
)

// longestLine is the largest number of requests of a project that may wait. A waiting request is
// cheap: its body has not been read.
const longestLine = 256

// newLine returns the gate that limits the concurrent requests of each project to atOnce; nil,
// which means no limit, if atOnce is 0.
func newLine(atOnce int) *turns.Gate {
	if atOnce <= 0 {
		return nil
	}
	return turns.New(math.MaxInt, atOnce)
}

// inLine serves a limited number of requests of a project at once, so that one project cannot use
// up the memory and the database connections that all share. Admins do not wait.
func (s *server) inLine(c *gin.Context) {
	by := asking(c)
	if s.line == nil || by.may("context_is_admin", by.ProjectID) {
		return
	}
	s.serveInLine(c, callerOf(by), c.Next)
}

// serveInLine serves a request when its turn comes, or refuses it if too many of the caller's
// requests wait.
func (s *server) serveInLine(c *gin.Context, caller string, serve func()) {
	if s.line == nil {
		serve()
		return
	}
	if s.line.Waiting(caller) >= longestLine {
		s.limited(c, time.Second, "too many requests of your project are waiting for an answer")
		return
	}
	ctx, end := awaited(c)
	err := s.line.Enter(ctx, caller)
	end()
	if err != nil {
		s.fail(c, &fault.Error{
			Kind: fault.Unavailable, Message: "other requests of your project took too long; try again", RetryAfter: overloaded, Err: err,
		})
		return
	}
	defer s.line.Leave(caller)
	serve()
}
