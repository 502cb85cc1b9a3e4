// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// callerKey is the key of the name under which the requests of a caller without a token are counted.
const callerKey = "caller"

// CountAs counts a request of a caller without a token under a name.
func (c *Call) CountAs(name string) { c.Set(callerKey, name) }

// Name returns the name under which the asker's requests are counted: the id of the project or, for system tokens, of the user.
func (a *Asker) Name() string {
	if a.ProjectID == "" {
		return "user " + a.UserID
	}
	return "project " + a.ProjectID
}

// caller returns the name under which a request is counted; empty for an admin, whose requests are not limited.
func (c *Call) caller() string {
	if name := c.GetString(callerKey); name != "" {
		return name
	}
	by, known := c.Get(askerKey)
	if !known || by.(*Asker).May("context_is_admin", by.(*Asker).ProjectID) {
		return ""
	}
	return by.(*Asker).Name()
}

// whose returns the words for the caller that a request counts for.
func (c *Call) whose() string {
	if isAddress(c.GetString(callerKey)) {
		return "your address"
	}
	return "your project"
}

// sender is the client to which a wrong token is attributed.
type sender struct {
	address string
	// connection is the address of the connection, if it may be a proxy of many clients; empty if
	// address is certainly a client's.
	connection string
}

// sender returns the sender of a request. An address that a proxy names is counted separately, so
// that one client behind the proxy does not use up the limit of the others. But anybody can write
// such a header, so the connection is counted too, unless proxies are trusted.
func (c *Call) sender() sender {
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
	case c.server.ProxyHeaders:
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

// proxied is how many times the limit of a single address the limit of a connection is, if the
// connection may be an untrusted proxy.
const proxied = 10

// FromAddress counts a request as one of its address.
func FromAddress(c *Call) { c.CountAs(addressPrefix + c.sender().address) }

// takeFailure counts a request whose token Keystone must check, before the check, so that
// concurrent requests count as well. It returns the time to wait if there were too many.
func (s *Server) takeFailure(from sender) time.Duration {
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
func (s *Server) forgive(from sender) {
	s.connections.giveBack(from.connection)
	s.failures.giveBack(from.address)
}

// tooMany counts a request that came too early, and returns its error.
func (s *Server) tooMany(wait time.Duration, message string) error {
	s.metrics.rateLimited.Inc()
	return &fault.Error{Kind: fault.TooMany, Message: message + "; wait for the time in Retry-After", RetryAfter: wait}
}

// limit limits the request rate of a project or an address, except for admins.
func (c *Call) limit() {
	s := c.server
	if s.projects == nil {
		return
	}
	if wait := s.projects.take(c.caller(), s.Monotonic()); wait > 0 {
		c.Fail(s.tooMany(wait, c.whose()+" sends too many requests"))
	}
}
