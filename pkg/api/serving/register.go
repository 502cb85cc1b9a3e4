// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// tell writes the header of the answer; a handler may replace it.
func (k Cache) tell(c *Call) {
	c.Header("Cache-Control", k.Control)
	for _, value := range k.Vary {
		c.Writer.Header().Add("Vary", value)
	}
}

// register registers the routes. gin accepts no path below one that ends with a wildcard, so there the handler of the
// wildcard finds those that have a route of their own.
func (s *Server) register(engine *gin.Engine, table []Route) {
	var wild []string
	exact := make(map[string]gin.HandlerFunc, len(table))
	for _, r := range table {
		exact[r.name()] = s.serve(r)
		if prefix, _, is := strings.Cut(r.name(), "*"); is {
			wild = append(wild, prefix)
		}
	}
	for _, r := range table {
		handler := exact[r.name()]
		below := func(prefix string) bool { return strings.HasPrefix(r.name(), prefix) }
		switch {
		case strings.Contains(r.Path, "*"):
			engine.Handle(r.Method, r.Path, func(c *gin.Context) {
				if own, is := exact[r.Method+" "+c.Request.URL.Path]; is {
					own(c)
					return
				}
				handler(c)
			})
		case !slices.ContainsFunc(wild, below):
			engine.Handle(r.Method, r.Path, handler)
		}
	}
}

// name returns the method and the path.
func (r Route) name() string { return r.Method + " " + r.Path }

// serve returns the handler of a route.
func (s *Server) serve(r Route) gin.HandlerFunc {
	steps := r.Steps
	if r.Keeps.Tag && r.Changes() {
		steps = append([]Step{readExpected}, steps...)
	}
	return func(gc *gin.Context) {
		c := s.call(gc)
		r.Keeps.tell(c)
		if r.Turn == OfAddress {
			FromAddress(c)
		}
		if !run(c, r.Who.Admit) {
			return
		}
		answer := func() { _ = run(c, r.Who.Check) && run(c, steps) }
		switch r.Turn {
		case Streaming:
			if c.limit(); !c.IsAborted() {
				answer()
			}
		case InLine, InTurn:
			if c.limit(); !c.IsAborted() {
				c.inLine(answer)
			}
		case OfAddress: // only wrong attempts are limited in number
			c.inLine(answer)
		default:
			answer()
		}
	}
}
