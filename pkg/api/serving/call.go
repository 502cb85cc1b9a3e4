// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Call is a request that is being answered. Nothing may use it after the request, because gin reuses its context.
type Call struct {
	*gin.Context
	server *Server
}

// call returns the call of a request.
func (s *Server) call(c *gin.Context) *Call { return &Call{c, s} }

// Step is a part of the answer to a request. One that refuses the request aborts it, and ends it so.
type Step func(c *Call)

const clientKey = "client"

// Client returns a context that ends when the client disconnects.
func (c *Call) Client() context.Context { return c.MustGet(clientKey).(context.Context) }

// Awaited returns a context for work that must not begin after the client has disconnected. It also
// ends with the time of the request.
func (c *Call) Awaited() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(c.Request.Context())
	client := c.Client()
	stop := context.AfterFunc(client, cancel)
	if client.Err() != nil {
		cancel() // AfterFunc calls cancel in another goroutine, too late
	}
	return ctx, func() {
		stop()
		cancel()
	}
}

// PathID returns the id in the path; a UUID may be written in any case.
func (c *Call) PathID() string { return placing.LowerUUID(c.Param("id")) }

// Token returns the token of the request; empty if it has none.
func (c *Call) Token() string { return c.GetHeader(tokenHeader) }

const tokenHeader = "X-Auth-Token"

// KeyHeader is the header with the idempotency key of a request.
const KeyHeader = "Idempotency-Key"

// longestKey is the largest number of characters of an idempotency key.
const longestKey = 255

// KeyUse returns the idempotency key of the request, whose body is JSON; nil if it has none.
func (c *Call) KeyUse(body []byte) (*booking.KeyUse, error) {
	key := c.GetHeader(KeyHeader)
	if key == "" {
		return nil, nil
	}
	if len(key) > longestKey {
		return nil, fault.Field(KeyHeader, "has more than %d characters", longestKey)
	}
	hash := sha256.Sum256(canonical(body))
	return &booking.KeyUse{Key: key, BodyHash: hex.EncodeToString(hash[:])}, nil
}

// canonical returns JSON in one canonical form, so that a retry with the same content has the same
// hash.
func canonical(body []byte) []byte {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return body
	}
	text, err := json.Marshal(value)
	if err != nil {
		return body
	}
	return text
}

// BaseURL returns the URL under which the client reaches the API, without a trailing slash. Behind a
// proxy it is derived from the original request as in oslo.middleware
// (oslo_middleware/http_proxy_to_wsgi.py).
func (c *Call) BaseURL() string {
	at := url.URL{Scheme: "http", Host: c.Request.Host}
	if c.Request.TLS != nil {
		at.Scheme = "https"
	}
	if c.server.ProxyHeaders {
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
func forwarded(c *Call, what string) string {
	first, _, _ := strings.Cut(c.GetHeader("X-Forwarded-"+what), ",")
	return strings.TrimSpace(first)
}

// Server serves the calls of a table of routes.
type Server struct {
	Options

	handler  http.Handler
	metrics  *metrics
	origins  http.CrossOriginProtection
	draining atomic.Bool
	projects *limits // by project
	failures *limits // wrong tokens, by address
	// connections limits wrong tokens by connection, if it may be a proxy.
	connections *limits
	arriving    *carried        // bodies
	unsent      *carried        // answers
	turns       map[string]Turn // by method and path
	secrets     *regexp.Regexp  // in paths; nil if there are none
}
