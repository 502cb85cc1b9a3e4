// SPDX-License-Identifier: Apache-2.0

package api

import (
	_ "embed"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
)

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

// base returns the URL under which the client reaches the API, without a trailing slash. Behind a
// proxy it is derived from the original request as in oslo.middleware
// (oslo_middleware/http_proxy_to_wsgi.py).
func (s *server) base(c *gin.Context) string {
	at := url.URL{Scheme: "http", Host: c.Request.Host}
	if c.Request.TLS != nil {
		at.Scheme = "https"
	}
	if s.ProxyHeaders {
		if scheme := forwarded(c, "Proto"); scheme == "http" || scheme == "https" {
			at.Scheme = scheme
		}
		if host := forwarded(c, "Host"); hostName.MatchString(host) {
			at.Host = host
		}
		if prefix := strings.Trim(forwarded(c, "Prefix"), "/"); prefix != "" {
			at.Path = "/" + prefix
		}
	}
	return at.String()
}

// hostName matches a name or an address, with or without a port.
var hostName = regexp.MustCompile(`^[A-Za-z0-9._-]+(:[0-9]+)?$|^\[[0-9A-Fa-f:.]+\](:[0-9]+)?$`)

// forwarded returns the value in the header that was added by the proxy next to the client; values
// of further proxies may follow it.
func forwarded(c *gin.Context, what string) string {
	first, _, _ := strings.Cut(c.GetHeader("X-Forwarded-"+what), ",")
	return strings.TrimSpace(first)
}

func (s *server) currentVersion(c *gin.Context) version {
	return version{
		ID: "v1.0", Status: "CURRENT", MinVersion: "1.0", MaxVersion: "1." + strconv.Itoa(latestMinor),
		Links: []link{{Rel: "self", Href: s.base(c) + "/v1"}},
	}
}

// versions handles GET /, in the form of OpenStack's version discovery.
func (s *server) versions(c *gin.Context) (any, error) {
	answer := gin.H{"versions": []version{s.currentVersion(c)}, "name": "almanac", "release": s.Version}
	if s.Demo != nil {
		answer["simulated"], answer["speed"] = true, max(1, s.Speed)
	}
	return answer, nil
}

// version handles GET /v1.
func (s *server) version(c *gin.Context) (any, error) {
	return gin.H{"version": s.currentVersion(c)}, nil
}

//go:embed openapi.yaml
var openAPIDocument []byte

//go:embed openapi-blazar.yaml
var openAPIOfBlazar []byte

// redirect returns the handler that sends clients to another place for ever.
func redirect(to string) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Header("Location", to)
		c.Status(http.StatusPermanentRedirect)
	}
}

// document returns the handler that sends a document.
func document(text []byte) gin.HandlerFunc {
	return func(c *gin.Context) { c.Data(http.StatusOK, "application/yaml", text) }
}
