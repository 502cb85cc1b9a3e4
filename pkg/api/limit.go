package api

import (
	"net"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// mostLimited is how many callers are remembered; the one who has not asked for the
// longest time is forgotten first.
const mostLimited = 10_000

// limits bounds how often each caller may ask. nil bounds nothing, and nobody is
// bounded whose name is empty.
type limits struct {
	perSecond rate.Limit
	burst     int
	callers   *lru.Cache[string, *rate.Limiter]
}

// newLimits gives limits of so many requests per second and at once; 0 per second
// is no limit.
func newLimits(perSecond float64, burst int) *limits {
	if perSecond <= 0 {
		return nil
	}
	callers, err := lru.New[string, *rate.Limiter](mostLimited)
	if err != nil {
		panic(err) // the size is no positive number
	}
	return &limits{rate.Limit(perSecond), max(1, burst), callers}
}

// take counts a request. It gives 0, or how long to wait where there were too many;
// then the request does not count.
func (l *limits) take(caller string, at time.Duration) time.Duration {
	if l == nil || caller == "" {
		return 0
	}
	limiter, known := l.callers.Get(caller)
	if !known {
		limiter = rate.NewLimiter(l.perSecond, l.burst)
		if other, meanwhile, _ := l.callers.PeekOrAdd(caller, limiter); meanwhile {
			limiter = other
		}
	}
	reserved := limiter.ReserveN(clock(at), 1)
	wait := reserved.DelayFrom(clock(at))
	if wait > 0 {
		reserved.CancelAt(clock(at))
	}
	return wait
}

// wait gives how long to wait until a request may come, and counts none.
func (l *limits) wait(caller string, at time.Duration) time.Duration {
	if l == nil || caller == "" {
		return 0
	}
	limiter, known := l.callers.Get(caller)
	if !known {
		return 0
	}
	missing := 1 - limiter.TokensAt(clock(at))
	return time.Duration(max(0, missing) / float64(l.perSecond) * float64(time.Second))
}

// clock is a moment of the monotonic time.
func clock(at time.Duration) time.Time { return time.Unix(0, 0).Add(at) }

// limit bounds how often a project asks. Admins are not bounded.
func (s *server) limit(c *gin.Context) {
	by := asking(c)
	if s.projects == nil || by.may("context_is_admin", by.ProjectID) {
		return
	}
	caller := "project " + by.ProjectID
	if by.ProjectID == "" {
		caller = "user " + by.UserID
	}
	s.limitCaller(c, caller)
}

func (s *server) limitCaller(c *gin.Context, caller string) {
	if wait := s.projects.take(caller, s.Monotonic()); wait > 0 {
		s.limited(c, wait, "your project sends too many requests")
	}
}

func (s *server) limited(c *gin.Context, wait time.Duration, message string) {
	s.metrics.rateLimited.Inc()
	s.fail(c, &fault.Error{
		Kind: fault.TooMany, Message: message + "; wait as long as Retry-After says", RetryAfter: wait,
	})
}

// address gives the address that a request comes from; nothing where a proxy that
// is not to be believed stands between, and many clients would be taken for one.
func (s *server) address(c *gin.Context) string {
	if forwarded := c.Request.Header.Values("X-Forwarded-For"); len(forwarded) > 0 {
		if !s.ProxyHeaders {
			return ""
		}
		// The last one is what the nearest proxy saw; the others anybody may write.
		all := strings.Split(forwarded[len(forwarded)-1], ",")
		return strings.TrimSpace(all[len(all)-1])
	}
	host, _, err := net.SplitHostPort(c.Request.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}
