// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strconv"

	"github.com/gin-gonic/gin"
)

// Remembered returns how many of this number of callers the limits remember.
func Remembered(callers int) int {
	l := newLimits(1, 1)
	for i := range callers {
		l.take(strconv.Itoa(i), 0)
	}
	return l.callers.Len()
}

// Routes lists the routes of the engine as "METHOD /path/:parameter".
func Routes(o Options) []string {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	(&server{Options: o}).routes(engine)
	var list []string
	for _, route := range engine.Routes() {
		list = append(list, route.Method+" "+route.Path)
	}
	return list
}
