// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"math"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/turns"
)

// longestLine is the largest number of requests of a project that may wait.
const longestLine = 256

// NewLine returns the gate that limits the concurrent requests of each project to atOnce; nil,
// which means no limit, if atOnce is 0.
func NewLine(atOnce int) *turns.Gate {
	if atOnce <= 0 {
		return nil
	}
	return turns.New(math.MaxInt, atOnce)
}

// inLine serves a limited number of requests of a caller at once, so that one project cannot use
// up the memory and the database connections that all share. Admins do not wait. The body arrives before
// the request is one of them, and the answer is sent when it no longer is: a client that stops sending
// or reading keeps none of its project's places.
func (c *Call) inLine(serve func()) {
	caller := c.caller()
	served := c.receive(caller)
	defer served()
	whole := &wholeAnswer{ResponseWriter: c.Writer}
	c.Writer = whole
	func() {
		defer func() { c.Writer = whole.ResponseWriter }() // after a panic too: nothing has been sent
		c.serveInLine(caller, func() {
			served() // from now on the body is one of so many requests at once
			serve()
		})
	}()
	c.deliver(caller, whole.text.Bytes())
}

// serveInLine serves a request when its turn comes, or refuses it if too many of the caller's
// requests wait.
func (c *Call) serveInLine(caller string, serve func()) {
	s := c.server
	if s.Line == nil || caller == "" {
		serve()
		return
	}
	if s.Line.Waiting(caller) >= longestLine {
		c.Fail(s.tooMany(time.Second, "too many requests of "+c.whose()+" are waiting for an answer"))
		return
	}
	ctx, end := c.Awaited()
	err := s.Line.Enter(ctx, caller)
	end()
	if err != nil {
		c.Fail(&fault.Error{
			Kind: fault.Unavailable, Message: "other requests of " + c.whose() + " took too long; try again", RetryAfter: Overloaded, Err: err,
		})
		return
	}
	defer s.Line.Leave(caller)
	serve()
}
