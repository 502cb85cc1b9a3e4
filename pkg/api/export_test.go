// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"strconv"

	"github.com/gin-gonic/gin"
)

// Carried are the bodies or answers that wait for clients.
type Carried struct{ *carried }

// NewCarried returns an empty one.
func NewCarried(most, mostOfAll int64) Carried { return Carried{newCarried(most, mostOfAll)} }

// Add is add.
func (l Carried) Add(caller string, bytes int64, giveUp func()) func() {
	return l.add(caller, bytes, giveUp)
}

// Remembered returns how many of this number of callers the limits remember.
func Remembered(callers int) int {
	l := newLimits(1, 1)
	for i := range callers {
		l.take(strconv.Itoa(i), 0)
	}
	return l.callers.Len()
}

// HoldLine takes a place in the line of a caller for a test.
func (s *Server) HoldLine(ctx context.Context, caller string) error {
	return s.server.line.Enter(ctx, caller)
}

// Routes lists the routes of the engine as "METHOD /path/:parameter".
func Routes(o Options) []string {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	s := &server{Options: o}
	s.register(engine, s.table())
	var list []string
	for _, route := range engine.Routes() {
		list = append(list, route.Method+" "+route.Path)
	}
	return list
}
