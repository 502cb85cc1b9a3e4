package api

import (
	_ "embed"
	"net/http"

	"github.com/gin-gonic/gin"
)

// health handles GET /healthcheck.
func (s *server) health(c *gin.Context) {
	if err := s.Ping(work(c)); err != nil {
		s.Log.Warn("health check failed", "error", err)
		c.String(http.StatusServiceUnavailable, "the database does not answer\n")
		return
	}
	c.String(http.StatusOK, "OK\n")
}

type version struct {
	ID         string `json:"id"`
	Status     string `json:"status"`
	MinVersion string `json:"min_version"`
	MaxVersion string `json:"max_version"`
	Links      []link `json:"links"`
}

type link struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
}

func currentVersion(c *gin.Context) version {
	scheme := "http"
	if c.Request.TLS != nil {
		scheme = "https"
	}
	return version{
		ID: "v1.0", Status: "CURRENT", MinVersion: "1.0", MaxVersion: "1.0",
		Links: []link{{Rel: "self", Href: scheme + "://" + c.Request.Host + "/v1"}},
	}
}

// versions handles GET /, as OpenStack's version discovery has it.
func (s *server) versions(c *gin.Context) {
	c.PureJSON(http.StatusOK, gin.H{"versions": []version{currentVersion(c)}, "name": "almanac", "release": s.Version})
}

// version handles GET /v1.
func (s *server) version(c *gin.Context) {
	c.PureJSON(http.StatusOK, gin.H{"version": currentVersion(c)})
}

//go:embed openapi.yaml
var openAPIDocument []byte

// openAPI handles GET /v1/openapi.yaml.
func (s *server) openAPI(c *gin.Context) {
	c.Data(http.StatusOK, "application/yaml", openAPIDocument)
}
