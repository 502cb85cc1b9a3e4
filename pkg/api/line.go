package api

import (
	"math"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/turns"
)

// longestLine is how many requests of a project may wait in line. One that waits costs little:
// its body is not read yet.
const longestLine = 256

// newLine returns the gate at which the requests of a project wait while so many of the same
// project are served; nil where any number is.
func newLine(atOnce int) *turns.Gate {
	if atOnce <= 0 {
		return nil
	}
	return turns.New(math.MaxInt, atOnce)
}

// inLine serves so many requests of a project at once, so that one project takes up neither the
// memory nor the connections to the database that all share. Admins do not wait.
func (s *server) inLine(c *gin.Context) {
	by := asking(c)
	if s.line == nil || by.may("context_is_admin", by.ProjectID) {
		return
	}
	s.serveInLine(c, callerOf(by), c.Next)
}

// serveInLine serves a request of a caller when its turn comes, or refuses it where too many wait.
func (s *server) serveInLine(c *gin.Context, caller string, serve func()) {
	if s.line == nil {
		serve()
		return
	}
	if s.line.Waiting(caller) >= longestLine {
		s.limited(c, time.Second, "too many requests of your project wait for an answer")
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
