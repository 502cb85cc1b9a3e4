package api

import (
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// mostLimited is how many callers are remembered; the one who has not asked for the
// longest time is forgotten first.
const mostLimited = 10_000

// limits bounds how often each caller may ask. nil bounds nothing, and nobody is
// bounded whose name is empty.
//
// A caller has asked for all that it may until an instant, which each request puts off by
// the time that one takes in the long run, and which may lie as far ahead as a burst does.
type limits struct {
	each, burst time.Duration

	mu      sync.Mutex
	callers *simplelru.LRU[string, time.Duration]
}

// newLimits returns limits of so many requests per second and at once; 0 per second
// is no limit.
func newLimits(perSecond float64, burst int) *limits {
	if perSecond <= 0 {
		return nil
	}
	callers, err := simplelru.NewLRU[string, time.Duration](mostLimited, nil)
	if err != nil {
		panic(err) // the size is no positive number
	}
	each := time.Duration(float64(time.Second) / perSecond)
	return &limits{each: each, burst: each * time.Duration(max(1, burst)), callers: callers}
}

// take counts a request. It returns 0, or how long to wait where there were too many;
// then the request does not count.
func (l *limits) take(caller string, at time.Duration) time.Duration {
	if l == nil || caller == "" {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	until, _ := l.callers.Get(caller)
	until = max(until, at) + l.each
	if wait := until - at - l.burst; wait > 0 {
		return wait
	}
	l.callers.Add(caller, until)
	return 0
}

// giveBack makes a request that was counted count no more.
func (l *limits) giveBack(caller string) {
	if l == nil || caller == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if until, known := l.callers.Peek(caller); known {
		l.callers.Add(caller, until-l.each)
	}
}

// limit bounds how often a project asks. Admins are not bounded.
func (s *server) limit(c *gin.Context) {
	by := asking(c)
	if s.projects == nil || by.may("context_is_admin", by.ProjectID) {
		return
	}
	s.limitCaller(c, callerOf(by))
}

// callerOf is whose requests are counted together: a project's, or those of a user of the system.
func callerOf(by *asker) string {
	if by.ProjectID == "" {
		return "user " + by.UserID
	}
	return "project " + by.ProjectID
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

// proxied is how many times as much the address of a connection may send as each address
// that it claims to pass requests on for, though nobody vouches for it.
const proxied = 10

// sender is by whom wrong tokens are counted.
type sender struct {
	address string
	// connection is where the request comes from, where that may be a proxy of many; empty
	// where address is known to be a client's.
	connection string
}

// senderOf returns who sends a request. An address that a proxy names counts by itself, so
// that one client behind it does not use up what all others may send, and anybody may write
// such a header: unless proxies are believed, the connection counts too.
func (s *server) senderOf(c *gin.Context) sender {
	connection := client(c.Request.RemoteAddr)
	forwarded := c.Request.Header.Values("X-Forwarded-For")
	if len(forwarded) == 0 {
		return sender{address: connection}
	}
	// The last one is what the nearest proxy saw; the others anybody may write.
	all := strings.Split(forwarded[len(forwarded)-1], ",")
	named := client(strings.TrimSpace(all[len(all)-1]))
	switch {
	case named == "":
		return sender{address: connection}
	case s.ProxyHeaders:
		return sender{address: named}
	default:
		return sender{address: named + " through " + connection, connection: connection}
	}
}

// client returns the address that limits know a client by, with or without a port in the
// text: of IPv6 the network of 64 bits, of whose addresses a client has as many as it
// wants. It is empty where the text is none.
func client(text string) string {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		host, _, _ := net.SplitHostPort(text)
		if ip, err = netip.ParseAddr(host); err != nil {
			return ""
		}
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}

// takeFailure counts a request whose token Keystone has to be asked about, before it is
// asked: so many at once cost no more than so many in a row. It returns how long to wait
// where there were too many.
func (s *server) takeFailure(from sender) time.Duration {
	at := s.Monotonic()
	if wait := s.connections.take(from.connection, at); wait > 0 {
		return wait
	}
	wait := s.failures.take(from.address, at)
	if wait > 0 {
		s.connections.giveBack(from.connection)
	}
	return wait
}

// forgive makes a request count no more whose token was not wrong.
func (s *server) forgive(from sender) {
	s.connections.giveBack(from.connection)
	s.failures.giveBack(from.address)
}
