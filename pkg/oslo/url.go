// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// URL is a transport_url in the interpretation of oslo_messaging/transport.py. Its String contains
// no password.
type URL struct {
	Scheme string // "rabbit" or "memory"
	Hosts  []Host // none means localhost
	// VirtualHost is RabbitMQ's virtual host: "/" if the URL has none. The first slash of the path
	// only ends the hosts: "host//v" is "/v".
	VirtualHost string
	// Query overrides options of [oslo_messaging_rabbit], by name.
	Query map[string]string
}

// Host is one broker of a URL.
type Host struct {
	Name     string
	Port     int
	User     string
	Password string
}

const defaultPort = 5672

// schemes maps the accepted schemes to their canonical names.
var schemes = map[string]string{"rabbit": "rabbit", "kombu": "rabbit", "memory": "memory", "fake": "memory"}

// ParseURL parses
//
//	rabbit://user:password@host:port[,user:password@host:port]/virtual_host[?option=value]
//
// with user, password and virtual host percent-encoded, or memory:// for messages inside one
// process (oslo's fake://). Errors are Invalid, name the field transport_url, and contain no
// password.
func ParseURL(text string) (URL, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	u := URL{Scheme: schemes[scheme], VirtualHost: "/", Query: map[string]string{}}
	switch {
	case !ok:
		return URL{}, invalidURL("has no scheme; write rabbit://user:password@host:5672/ or memory://")
	case u.Scheme == "":
		return URL{}, invalidURL("has the scheme %q; Almanac supports rabbit and memory", scheme)
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	netloc, path, _ := strings.Cut(rest, "/")
	if err := u.readQuery(query); err != nil {
		return URL{}, err
	}
	vhost, err := url.PathUnescape(path)
	if err != nil {
		return URL{}, invalidURL("has a virtual host that is not percent-encoded: write %%25 for %%")
	}
	if vhost != "" {
		u.VirtualHost = vhost
	}
	for part := range strings.SplitSeq(netloc, ",") {
		if part == "" {
			continue
		}
		host, err := parseHost(part)
		if err != nil {
			return URL{}, err
		}
		u.Hosts = append(u.Hosts, host)
	}
	return u, nil
}

// readQuery parses the options; the values of a repeated option are joined by commas.
func (u URL) readQuery(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return invalidURL("has options after the ? that are not of the form name=value&name=value")
	}
	for name, given := range values {
		given = slices.DeleteFunc(given, func(value string) bool { return value == "" })
		if len(given) > 0 {
			u.Query[name] = strings.Join(given, ",")
		}
	}
	return nil
}

// parseHost parses user:password@host:port. The last @ ends the password and the first colon the
// user; either may be missing.
func parseHost(text string) (Host, error) {
	host := Host{Port: defaultPort}
	address := text
	if at := strings.LastIndex(text, "@"); at >= 0 {
		address = text[at+1:]
		user, password, _ := strings.Cut(text[:at], ":")
		var err, err2 error
		host.User, err = url.PathUnescape(user)
		host.Password, err2 = url.PathUnescape(password)
		if err != nil || err2 != nil {
			return Host{}, invalidURL("has a user or password that is not percent-encoded: write %%25 for %%, %%40 for @, %%2F for /")
		}
	}
	name, port, bracketed := address, "", false
	if inside, ok := strings.CutPrefix(address, "["); ok {
		if name, port, bracketed = strings.Cut(inside, "]"); !bracketed {
			return Host{}, invalidURL("has an IPv6 address without its closing bracket")
		}
		port = strings.TrimPrefix(port, ":")
	} else {
		name, port, _ = strings.Cut(address, ":")
	}
	host.Name = name
	if port != "" {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return Host{}, invalidURL("has a port that is not a number from 1 to 65535; write an IPv6 address in brackets, and / @ : in a password as %%2F %%40 %%3A")
		}
		host.Port = n
	}
	if host.Name == "" {
		host.Name = "localhost"
	}
	return host, nil
}

func invalidURL(format string, args ...any) error {
	return fault.Field("transport_url", format, args...)
}

// String returns the URL with *** for each password.
func (u URL) String() string {
	hosts := make([]string, len(u.Hosts))
	for i, host := range u.Hosts {
		hosts[i] = host.String()
	}
	text := u.Scheme + "://" + strings.Join(hosts, ",") + "/"
	if u.VirtualHost != "/" {
		text += url.PathEscape(u.VirtualHost)
	}
	options := url.Values{}
	for name, value := range u.Query {
		options.Set(name, value)
	}
	if len(options) > 0 {
		text += "?" + options.Encode()
	}
	return text
}

// GoString keeps the passwords out of %#v.
func (u URL) GoString() string { return u.String() }

// Address returns host:port, for dialing.
func (h Host) Address() string { return net.JoinHostPort(h.Name, strconv.Itoa(h.Port)) }

// String returns user:***@host:port.
func (h Host) String() string {
	text := h.Address()
	switch {
	case h.Password != "":
		return url.PathEscape(h.User) + ":***@" + text
	case h.User != "":
		return url.PathEscape(h.User) + "@" + text
	}
	return text
}

// GoString keeps the password out of %#v.
func (h Host) GoString() string { return h.String() }
