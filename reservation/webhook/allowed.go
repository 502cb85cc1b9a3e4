// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Allowed are the addresses that webhooks may have. The zero value allows none.
type Allowed struct{ entries []entry }

// entry allows a host by its name, the names below a domain, or a network.
type entry struct {
	scheme  string
	name    string // without a dot at its end
	below   bool   // the names below name, too
	network netip.Prefix
	port    string // empty means any
}

// ports are those of the schemes.
var ports = map[string]string{"https": "443", "http": "80"}

// ParseAllowed returns what a list allows: each item is a name, *. and a domain, or a network in CIDR form, with :PORT or
// :* behind it for other ports than the scheme's own, and http:// before it for HTTP without TLS. An IPv6 network has
// brackets.
func ParseAllowed(items []string) (a Allowed, err error) {
	for _, item := range items {
		e, ok := parseEntry(item)
		if !ok {
			return a, fault.Field("allowed", "%q is no name such as hooks.example.org, domain such as *.example.org or network such as 192.0.2.0/24, with an optional :PORT", item)
		}
		a.entries = append(a.entries, e)
	}
	return a, nil
}

func parseEntry(item string) (e entry, ok bool) {
	e.scheme = "https"
	if scheme, rest, has := strings.Cut(item, "://"); has {
		e.scheme, item = scheme, rest
	}
	port, known := ports[e.scheme]
	if !known {
		return e, false
	}
	address := ""
	if strings.HasPrefix(item, "[") {
		inside, rest, closed := strings.Cut(item[1:], "]")
		if !closed || !strings.Contains(inside, ":") {
			return e, false
		}
		address, item = inside, rest
	}
	host, given, has := strings.Cut(item, ":")
	if has {
		port = given
	}
	if host = address + host; !portAllowed(port) {
		return e, false
	}
	if e.port = port; port == "*" {
		e.port = ""
	}
	return e, e.setHost(host)
}

func portAllowed(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "*" || err == nil && n > 0
}

// setHost reads the name or the network of an entry; false if it is neither.
func (e *entry) setHost(host string) bool {
	if network, err := netip.ParsePrefix(host); err == nil {
		e.network = network.Masked()
		return true
	}
	if at, err := netip.ParseAddr(host); err == nil {
		e.network = netip.PrefixFrom(at, at.BitLen())
		return true
	}
	host, e.below = strings.CutPrefix(host, "*.")
	e.name = PlainName(host)
	return e.name != "" && !strings.ContainsAny(e.name, "*/:@ []?#") && strings.Trim(e.name, ".") == e.name
}

// PlainName returns a name as it is compared: in lower case, without a dot at its end.
func PlainName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// None reports whether nothing is allowed.
func (a Allowed) None() bool { return len(a.entries) == 0 }

// Target is where a delivery goes.
type Target struct {
	Scheme, Host, Port string
}

// TargetOf returns the target of a URL, or an Invalid fault if it is none for a webhook.
func TargetOf(address string) (Target, error) {
	at, err := url.Parse(address)
	switch {
	case err != nil || ports[at.Scheme] == "" || at.Hostname() == "":
		return Target{}, fault.Field("url", "must be a URL such as https://hooks.example.org/almanac")
	case at.User != nil:
		return Target{}, fault.Field("url", "must not have a user or a password; the receiver knows Almanac by the signature")
	case at.Fragment != "":
		return Target{}, fault.Field("url", "must not have a fragment (#)")
	}
	t := Target{at.Scheme, PlainName(at.Hostname()), at.Port()}
	if t.Port == "" {
		t.Port = ports[t.Scheme]
	}
	if t.Port == "*" || !portAllowed(t.Port) {
		return Target{}, fault.Field("url", "has port %s; ports are from 1 to 65535", t.Port)
	}
	return t, nil
}

// Permits returns nil if the operator may have allowed a target: which networks its name is in shows when it is
// resolved, and Reaches decides about each address.
func (a Allowed) Permits(t Target) error {
	if a.None() {
		return fault.New(fault.Denied, "no webhooks may be made here; the operator allows receivers with [webhooks] allowed")
	}
	literal, err := netip.ParseAddr(t.Host)
	isAddress := err == nil
	if slices.ContainsFunc(a.entries, func(e entry) bool {
		return e.scheme == t.Scheme && (e.port == "" || e.port == t.Port) &&
			(e.names(t.Host) || e.network.IsValid() && (!isAddress || e.network.Contains(literal.Unmap())))
	}) {
		return nil
	}
	if t.Scheme == "http" && !slices.ContainsFunc(a.entries, func(e entry) bool { return e.scheme == "http" }) {
		return fault.Field("url", "must begin with https://")
	}
	return fault.Field("url", "%s on port %s is none of the receivers that the operator allows; ask for it in [webhooks] allowed", t.Host, t.Port)
}

// Reaches reports whether a target may be contacted at an address: one in an allowed network, or a public one of an
// allowed name.
func (a Allowed) Reaches(t Target, at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	return slices.ContainsFunc(a.entries, func(e entry) bool {
		return e.scheme == t.Scheme && (e.port == "" || e.port == t.Port) &&
			(e.network.IsValid() && e.network.Contains(at) || e.names(t.Host) && public(at))
	})
}

func (e entry) names(host string) bool {
	return e.name != "" && (!e.below && host == e.name || e.below && strings.HasSuffix(host, "."+e.name))
}

// special are the networks that are no hosts of the internet, or that stand for others (IANA's registries of special
// addresses).
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/9", "ff00::/8",
)

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// public reports whether an address is one of a host of the internet.
func public(at netip.Addr) bool {
	return at.IsGlobalUnicast() && !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(at) })
}

// Address returns the address and the port of a connection that is about to be made.
func Address(hostPort string) (netip.Addr, error) {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return netip.Addr{}, err
	}
	return netip.ParseAddr(host)
}
