package api

import "github.com/gin-gonic/gin"

// Routes lists what the engine serves, "METHOD /path/:parameter".
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
