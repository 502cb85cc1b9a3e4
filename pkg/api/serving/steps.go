// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// NoParameters refuses requests with any parameter: a client must not get an answer that ignores a
// part of its request.
func NoParameters(c *Call) {
	if q := c.Parameters(); q.Err != nil {
		c.Fail(q.Err)
	}
}

// ForProject refuses callers without a project.
func ForProject(c *Call) {
	if c.Asker().ProjectID == "" {
		c.Fail(fault.New(fault.Denied, "your token is for the system; get one for the project that owns this"))
	}
}

// There returns a step that refuses a call unless what it is about is there.
func There(is bool, otherwise *fault.Error) Step {
	return func(c *Call) {
		if !is {
			c.Fail(otherwise)
		}
	}
}

// Handler returns the step that lets a handler of net/http answer.
func Handler(h http.Handler) Step {
	return func(c *Call) { h.ServeHTTP(c.Writer, c.Request) }
}

// run calls the steps one after the other, and reports whether none has ended the request.
func run(c *Call, steps []Step) bool {
	for _, step := range steps {
		if step(c); c.IsAborted() {
			return false
		}
	}
	return true
}
