// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"log/slog"
	"regexp"
	"strings"

	"github.com/gin-gonic/gin"
)

// secretsIn returns an expression that matches the secrets in paths, which must not be in the log: what follows the
// beginning of a route whose parameters are secret. Anything may stand before it, as a client or a proxy may have added
// a prefix. It returns nil if no route has secrets.
func secretsIn(table []Route) *regexp.Regexp {
	var begin []string
	for _, r := range table {
		if fixed, _, _ := strings.Cut(r.Path, ":"); r.Who.Secret {
			begin = append(begin, regexp.QuoteMeta(strings.Trim(fixed, "/")))
		}
	}
	if len(begin) == 0 {
		return nil
	}
	return regexp.MustCompile(`(?i)(` + strings.Join(begin, "|") + `).+`)
}

// identify assigns the request its id and logs its result.
func (s *Server) identify(c *gin.Context) {
	ids := RequestIDs{Own: s.NewRequestID()}
	if global := c.GetHeader(requestIDHeader); globalID.MatchString(global) {
		ids.Global = global
	}
	c.Set(requestIDKey, ids.Own)
	c.Header(requestIDHeader, ids.Own)
	ctx := context.WithValue(c.Request.Context(), requestIDsKey{}, ids)
	c.Request = c.Request.WithContext(ctx)
	path := c.Request.URL.Path
	if s.secrets != nil {
		path = s.secrets.ReplaceAllString(path, "$1***")
	}
	begun := s.Monotonic()
	c.Next()
	level := slog.LevelInfo
	if path == HealthPath {
		level = slog.LevelDebug // balancers ask every second
	}
	attributes := []any{
		"method", c.Request.Method, "path", path, "status", c.Writer.Status(), "bytes", max(0, c.Writer.Size()),
		"seconds", (s.Monotonic() - begun).Seconds(), "from", c.Request.RemoteAddr,
	}
	if by, known := c.Get(askerKey); known {
		by := by.(*Asker)
		attributes = append(attributes, "user", by.UserID, "project", by.ProjectID)
	}
	s.Log.Log(ctx, level, "answered", attributes...)
}
