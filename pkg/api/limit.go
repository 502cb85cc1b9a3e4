// SPDX-License-Identifier: Apache-2.0

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

// mostLimited is the largest number of callers that limits stores; it removes the least recent one
// first.
const mostLimited = 10_000

// limits limits how often each caller may send requests. A nil *limits allows everything, and so
// does an empty caller.
//
// For each caller it stores an instant until which the allowance is used up. Each request moves
// this instant ahead by the time between requests at the permitted rate; it may be ahead of now by
// at most the burst.
type limits struct {
	each, burst time.Duration

	mu      sync.Mutex
	callers *simplelru.LRU[string, time.Duration]
}

// newLimits returns limits of perSecond requests in the long run and burst at once. It returns nil,
// which means no limit, if perSecond is 0.
func newLimits(perSecond float64, burst int) *limits {
	if perSecond <= 0 {
		return nil
	}
	callers, err := simplelru.NewLRU[string, time.Duration](mostLimited, nil)
	if err != nil {
		panic(err) // the size is not positive
	}
	each := time.Duration(float64(time.Second) / perSecond)
	return &limits{each: each, burst: each * time.Duration(max(1, burst)), callers: callers}
}

// take counts a request and returns 0. If there were too many requests, it does not count this one,
// and returns the time to wait.
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

// giveBack removes one counted request.
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

// limit limits the request rate of a project or an address, except for admins.
func (s *server) limit(c *gin.Context) {
	if s.projects == nil {
		return
	}
	if wait := s.projects.take(s.callerIn(c), s.Monotonic()); wait > 0 {
		s.limited(c, wait, whose(c)+" sends too many requests")
	}
}

// callerOf returns the name under which requests are counted: the id of the project or, for system
// tokens, of the user.
func callerOf(by *asker) string {
	if by.ProjectID == "" {
		return "user " + by.UserID
	}
	return "project " + by.ProjectID
}

// whose returns the words for the caller that a request counts for.
func whose(c *gin.Context) string {
	if isAddress(c.GetString(callerKey)) {
		return "your address"
	}
	return "your project"
}

func (s *server) limited(c *gin.Context, wait time.Duration, message string) {
	s.fail(c, s.tooMany(wait, message))
}

// tooMany counts a request that came too early, and returns its error.
func (s *server) tooMany(wait time.Duration, message string) error {
	s.metrics.rateLimited.Inc()
	return &fault.Error{Kind: fault.TooMany, Message: message + "; wait for the time in Retry-After", RetryAfter: wait}
}

// proxied is how many times the limit of a single address the limit of a connection is, if the
// connection may be an untrusted proxy.
const proxied = 10

// sender is the client to which a wrong token is attributed.
type sender struct {
	address string
	// connection is the address of the connection, if it may be a proxy of many clients; empty if
	// address is certainly a client's.
	connection string
}

// senderOf returns the sender of a request. An address that a proxy names is counted separately, so
// that one client behind the proxy does not use up the limit of the others. But anybody can write
// such a header, so the connection is counted too, unless proxies are trusted.
func (s *server) senderOf(c *gin.Context) sender {
	connection := client(c.Request.RemoteAddr)
	forwarded := c.Request.Header.Values("X-Forwarded-For")
	if len(forwarded) == 0 {
		return sender{address: connection}
	}
	// Only the last entry comes from the nearest proxy; a client can write the others.
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

// client returns the client's address for limits, from text with or without a port; "" if text
// contains no address. For IPv6 it is the network of 64 bits, because a client can use any address
// in it.
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

// takeFailure counts a request whose token Keystone must check, before the check, so that
// concurrent requests count as well. It returns the time to wait if there were too many.
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

// forgive takes back the count of a request whose token was not wrong.
func (s *server) forgive(from sender) {
	s.connections.giveBack(from.connection)
	s.failures.giveBack(from.address)
}
