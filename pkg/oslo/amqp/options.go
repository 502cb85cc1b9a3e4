// SPDX-License-Identifier: Apache-2.0

// Package amqp carries oslo messages over RabbitMQ.
//
// It keeps two connections, one to publish and one to consume, so that acknowledgements still
// reach a broker that throttles publishers. amqp091-go recovers both: it dials again, repeats the
// handshake and reopens the channels with their prefetch and confirm mode. This package adds what
// that recovery lacks, through its hooks:
//
//   - the first connection, growing pauses, and a change of host with its own
//     password (link.go);
//   - declarations that the broker refuses: the library ignores them and
//     continues, here they are errors (subscription.go);
//   - delivery tags: after a reconnection the broker counts from 1 again, and the
//     acknowledgement of an older delivery would settle another message. Each
//     reconnection has its own consumers, and deliveries of the old ones can no
//     longer be settled (subscription.go);
//   - consumers that the broker cancels because their queue is gone;
//   - unconfirmed messages: the publisher gets an error (publish.go).
package amqp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// Options are the settings of a transport; the names in the comments are those of
// [oslo_messaging_rabbit]. The options in the URL override them.
type Options struct {
	// Name begins the connection_name of both connections at the broker; publish or consume follows.
	Name          string
	Heartbeat     time.Duration // heartbeat_timeout_threshold; 0 is 60 s
	RetryInterval time.Duration // rabbit_retry_interval; 0 is 1 s
	RetryBackoff  time.Duration // rabbit_retry_backoff; 0 is 2 s
	IntervalMax   time.Duration // rabbit_interval_max; 0 is 30 s
	TLS           TLS
	// NewID returns a random UUID.
	NewID func() string
	Now   func() time.Time
	Log   *slog.Logger
}

// TLS has the settings for encryption. The broker's certificate is always verified: against
// CAFile, or the system's authorities without one.
type TLS struct {
	Enabled        bool   // ssl
	CAFile         string // ssl_ca_file
	CertFile       string // ssl_cert_file
	KeyFile        string // ssl_key_file
	VerifyHostname bool   // ssl_enforce_hostname_verification
}

// ofOslo are the options of [oslo_messaging_rabbit] that change nothing in what oslo.messaging sends.
var ofOslo = []string{
	"direct_mandatory_flag", "enable_cancel_on_failover", "heartbeat_in_pthread", "heartbeat_rate", "hostname",
	"kombu_failover_strategy", "kombu_missing_consumer_retry_timeout", "kombu_reconnect_delay", "kombu_reconnect_splay", "processname",
	"rabbit_qos_prefetch_count", "use_queue_manager",
}

// override returns the options overridden by those of the URL. It ignores options for queues,
// which apply to declarations, and those of oslo.messaging alone.
func (o Options) override(query map[string]string) (Options, error) {
	durations := map[string]*time.Duration{
		"heartbeat_timeout_threshold": &o.Heartbeat,
		"rabbit_retry_interval":       &o.RetryInterval,
		"rabbit_retry_backoff":        &o.RetryBackoff,
		"rabbit_interval_max":         &o.IntervalMax,
	}
	flags := map[string]*bool{
		"ssl":                               &o.TLS.Enabled,
		"ssl_enforce_hostname_verification": &o.TLS.VerifyHostname,
	}
	texts := map[string]*string{
		"ssl_ca_file":   &o.TLS.CAFile,
		"ssl_cert_file": &o.TLS.CertFile,
		"ssl_key_file":  &o.TLS.KeyFile,
	}
	var known []string
	for name := range durations {
		known = append(known, name)
	}
	for name := range flags {
		known = append(known, name)
	}
	for name := range texts {
		known = append(known, name)
	}
	for name, value := range query {
		if into, ok := durations[name]; ok {
			seconds, err := strconv.ParseUint(value, 10, 31)
			if err != nil {
				return o, fault.Field("transport_url", "%s is %q; write whole seconds", name, value)
			}
			*into = time.Duration(seconds) * time.Second
		} else if into, ok := flags[name]; ok {
			on, err := oslo.ParseBool(value)
			if err != nil {
				return o, fault.Field("transport_url", "%s is %q; write true or false", name, value)
			}
			*into = on
		} else if into, ok := texts[name]; ok {
			*into = value
		} else if !oslo.IsQueueOption(name) && !slices.Contains(ofOslo, name) {
			return o, fault.Field("transport_url", "%s", fault.Unknown("option", name, known))
		}
	}
	return o, nil
}

// withDefaults returns the options with oslo.messaging's values in place of zero ones.
func (o Options) withDefaults() Options {
	o.Heartbeat = cmp.Or(o.Heartbeat, time.Minute)
	o.RetryInterval = cmp.Or(o.RetryInterval, time.Second)
	o.RetryBackoff = cmp.Or(o.RetryBackoff, 2*time.Second)
	o.IntervalMax = cmp.Or(o.IntervalMax, 30*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

// pause returns how long to wait after n failed attempts.
func (o Options) pause(n int) time.Duration {
	return min(o.RetryInterval+time.Duration(n-1)*o.RetryBackoff, o.IntervalMax)
}

// config returns the client's TLS configuration, or nil without TLS.
func (t TLS) config() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fault.Field("ssl_ca_file", "cannot be read: %v", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fault.Field("ssl_ca_file", "%s contains no certificate", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, cmp.Or(t.KeyFile, t.CertFile))
		if err != nil {
			return nil, fault.Field("ssl_cert_file", "cannot be used with ssl_key_file: %v", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if !t.VerifyHostname {
		// The standard verification cannot skip only the host name, so verifyChain replaces it and
		// verifies only the chain.
		c.InsecureSkipVerify = true
		c.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(c.RootCAs, state) }
	}
	return c, nil
}

// verifyChain checks the broker's certificate against the authorities, without its name.
func verifyChain(roots *x509.CertPool, state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the broker presented no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		intermediates.AddCert(certificate)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates})
	return fault.While(err, "the broker's certificate")
}
