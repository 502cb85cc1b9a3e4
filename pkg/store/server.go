// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// ioTimeout limits the wait for a connection, and for every answer on it, if the connection sets no
// limit.
const ioTimeout = 20 * time.Second

// server is a database on a MariaDB or MySQL server, or on one of several.
type server struct {
	config *mysql.Config // of the first host
	others []string      // addresses of further hosts, in order of preference
}

// String implements target.
func (t server) String() string {
	return fmt.Sprintf("%s@%s/%s", t.config.User, strings.Join(t.addresses(), ","), t.config.DBName)
}

func (t server) addresses() []string { return append([]string{t.config.Addr}, t.others...) }

var (
	// urlForm is the part after the scheme, as SQLAlchemy parses it: a password may contain every
	// character except an at sign (sqlalchemy/engine/url.py, _parse_url). A host has none either, so
	// that no part of a password becomes the host of a message.
	urlForm = regexp.MustCompile(`^(?:([^:/]*)(?::([^@]*))?@)?([^/?@]*)(?:/([^?]*))?(?:\?(.*))?$`)
	// hostForm is one of the hosts, which are separated by commas. SQLAlchemy has only one.
	hostForm = regexp.MustCompile(`^(?:\[([^\[\]]+)\]|([^:\[\]]*))(?::(.*))?$`)
	// goForm is the form of https://github.com/go-sql-driver/mysql#dsn-data-source-name.
	goForm = regexp.MustCompile(`^(?:.*@)?(?:tcp|unix)\([^()]*\)/[^/]*$`)
)

// parseServer reads the part of an SQLAlchemy URL after the scheme.
func parseServer(rest string) (target, error) {
	part := urlForm.FindStringSubmatch(rest)
	if part == nil {
		return nil, malformed()
	}
	config := newConfig()
	var err error
	if config.User, err = url.PathUnescape(part[1]); err == nil {
		config.Passwd, err = url.PathUnescape(part[2])
	}
	if err != nil {
		return nil, fault.Field("connection", "the user or the password has a broken escape; write %%25 for a percent sign")
	}
	addresses, err := parseHosts(part[3])
	if err != nil {
		return nil, err
	}
	config.Net, config.Addr, config.DBName = "tcp", addresses[0], part[4]
	if config.DBName == "" {
		return nil, fault.Field("connection", "names no database: it must end in /DATABASE")
	}
	options, err := url.ParseQuery(part[5])
	if err != nil {
		return nil, fault.Field("connection", "the options behind the question mark cannot be read")
	}
	// All hosts together may take as long as one.
	config.Timeout = ioTimeout / time.Duration(len(addresses))
	if err := setOptions(config, options); err != nil {
		return nil, err
	}
	if config.Net == "unix" && len(addresses) > 1 {
		return nil, fault.Field("connection", "unix_socket is one server; name no other hosts")
	}
	return server{config, addresses[1:]}, nil
}

// parseHosts returns the address of each host, at least one.
func parseHosts(hosts string) (addresses []string, err error) {
	list := strings.Split(hosts, ",")
	for _, text := range list {
		part := hostForm.FindStringSubmatch(text)
		if part == nil || text == "" && len(list) > 1 {
			return nil, malformed()
		}
		port := cmp.Or(part[3], "3306")
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fault.Field("connection", "the port must be a number from 1 to 65535")
		}
		addresses = append(addresses, net.JoinHostPort(cmp.Or(part[1]+part[2], "localhost"), port))
	}
	return addresses, nil
}

func malformed() error {
	return fault.Field("connection", "must read mysql+pymysql://USER:PASSWORD@HOST:PORT/DATABASE; in a password, write %%40 for an at sign")
}

// parseGoForm reads the Go driver's own form. Options that Almanac requires, such as
// parseTime, are overwritten later.
func parseGoForm(connection string) (target, error) {
	config, err := mysql.ParseDSN(connection)
	if err != nil {
		return nil, fault.Field("connection", "is not in the form USER:PASSWORD@tcp(HOST:PORT)/DATABASE?OPTIONS, or an option has a wrong value")
	}
	for name := range config.Params {
		return nil, fault.Field("connection", "%s", fault.Unknown("option", name, goOptions))
	}
	if config.DBName == "" {
		return nil, fault.Field("connection", "names no database: it must end in /DATABASE")
	}
	if config.Timeout == 0 {
		config.Timeout = ioTimeout
	}
	if config.ReadTimeout == 0 {
		config.ReadTimeout = ioTimeout
	}
	if config.WriteTimeout == 0 {
		config.WriteTimeout = ioTimeout
	}
	return server{config: config}, nil
}

// goOptions are the options that an operator may need.
var goOptions = []string{"charset", "collation", "timeout", "readTimeout", "writeTimeout", "tls", "maxAllowedPacket", "serverPubKey"}

func newConfig() *mysql.Config {
	config := mysql.NewConfig()
	config.Timeout, config.ReadTimeout, config.WriteTimeout = ioTimeout, ioTimeout, ioTimeout
	return config
}

// urlOptions are the options of PyMySQL that SQLAlchemy passes on.
var urlOptions = []string{
	"charset", "connect_timeout", "read_timeout", "write_timeout", "unix_socket",
	"ssl_ca", "ssl_cert", "ssl_key", "ssl_check_hostname", "ssl_verify_cert",
}

func setOptions(config *mysql.Config, options url.Values) error {
	options.Del("plugin") // of SQLAlchemy, in Python; DevStack counts queries with one
	for name := range options {
		if !slices.Contains(urlOptions, name) {
			return fault.Field("connection", "%s", fault.Unknown("option", name, urlOptions))
		}
	}
	if charset := options.Get("charset"); !slices.Contains([]string{"", "utf8", "utf8mb3", "utf8mb4"}, charset) {
		return fault.Field("connection", "charset must be utf8 or utf8mb4")
	}
	for name, into := range map[string]*time.Duration{
		"connect_timeout": &config.Timeout, "read_timeout": &config.ReadTimeout, "write_timeout": &config.WriteTimeout,
	} {
		if !options.Has(name) {
			continue
		}
		seconds, err := strconv.ParseUint(options.Get(name), 10, 31)
		if err != nil || seconds == 0 {
			return fault.Field("connection", "%s must be a number of seconds, at least 1", name)
		}
		*into = time.Duration(seconds) * time.Second
	}
	if socket := options.Get("unix_socket"); socket != "" {
		config.Net, config.Addr = "unix", socket
	}
	return setTLS(config, options)
}

// setTLS encrypts the connection if the options name a file. Like PyMySQL it verifies the server's
// certificate, and the name in it unless ssl_check_hostname is false.
func setTLS(config *mysql.Config, options url.Values) error {
	// OpenStack-Helm writes it without a value.
	if verify := options.Get("ssl_verify_cert"); !slices.Contains([]string{"", "1", "true", "True"}, verify) {
		return fault.Field("connection", "ssl_verify_cert must be true: Almanac always verifies the server's certificate")
	}
	ca, cert, key := options.Get("ssl_ca"), options.Get("ssl_cert"), options.Get("ssl_key")
	if ca == "" && cert == "" && key == "" {
		if options.Has("ssl_check_hostname") {
			return fault.Field("connection", "ssl_check_hostname needs ssl_ca")
		}
		return nil
	}
	config.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return fault.Field("connection", "ssl_ca: %v", err)
		}
		config.TLS.RootCAs = x509.NewCertPool()
		if !config.TLS.RootCAs.AppendCertsFromPEM(text) {
			return fault.Field("connection", "ssl_ca: %s has no certificate in PEM form", ca)
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fault.Field("connection", "ssl_cert and ssl_key: %v", err)
		}
		config.TLS.Certificates = []tls.Certificate{pair}
	}
	switch check := options.Get("ssl_check_hostname"); check {
	case "", "1", "true", "True":
	case "0", "false", "False":
		trustAnyName(config.TLS)
	default:
		return fault.Field("connection", "ssl_check_hostname must be true or false")
	}
	return nil
}

// trustAnyName makes c verify the server's certificate, but not the name in it.
func trustAnyName(c *tls.Config) {
	c.InsecureSkipVerify = true // VerifyConnection does the rest
	c.VerifyConnection = func(state tls.ConnectionState) error {
		others := x509.NewCertPool()
		for _, certificate := range state.PeerCertificates[1:] {
			others.AddCert(certificate)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: c.RootCAs, Intermediates: others})
		return err
	}
}

// onlyReads is the first statement of a session; it prevents changes.
const onlyReads = "SET SESSION TRANSACTION READ ONLY"

// OpenForeign returns a pool of read-only connections to the database of another service on MariaDB
// or MySQL. The connection has the form of that service's own configuration. OpenForeign does not
// connect yet. It fails with an Invalid fault, which does not contain the password.
func OpenForeign(connection string, log *slog.Logger) (*sql.DB, error) {
	t, err := parseConnection(connection)
	if err != nil {
		return nil, err
	}
	there, ok := t.(server)
	if !ok {
		return nil, fault.Field("connection", "must be a database on MariaDB or MySQL, as in mysql+pymysql://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	there.config = there.config.Clone()
	there.config.MultiStatements, there.config.AllowAllFiles = false, false
	connector, err := there.connector(log, &writability{}, onlyReads)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
