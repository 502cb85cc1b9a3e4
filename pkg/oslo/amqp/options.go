// Package amqp carries oslo messages over RabbitMQ.
//
// It keeps two connections, one to publish and one to consume, so that a broker
// that slows publishers down still hears acknowledgements. Both recover by
// amqp091-go's own recovery, which dials again, repeats the handshake and
// reopens the channels with their prefetch and confirm mode. What that recovery
// does not do is done here, through the hooks it has for it:
//
//   - the first connection, pauses that grow, and a change of host with its own
//     password (link.go);
//   - declarations that the broker refuses: the library skips them and goes on
//     without, here they are errors (subscription.go);
//   - delivery tags: after a reconnection the broker counts from 1 again, and an
//     acknowledgement of an older delivery would settle somebody else's. Each
//     reconnection has consumers of its own, and what the old ones have
//     delivered can no longer be settled (subscription.go);
//   - consumers that the broker cancels because their queue is gone;
//   - messages that were not confirmed: the publisher gets an error (publish.go).
package amqp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// Options of a transport; the names in the comments are those of
// [oslo_messaging_rabbit]. The options in the URL override them.
type Options struct {
	// Name is shown by the broker beside the connection.
	Name          string
	Heartbeat     time.Duration // heartbeat_timeout_threshold; 0 is 60 s
	RetryInterval time.Duration // rabbit_retry_interval; 0 is 1 s
	RetryBackoff  time.Duration // rabbit_retry_backoff; 0 is 2 s
	IntervalMax   time.Duration // rabbit_interval_max; 0 is 30 s
	TLS           TLS
	// NewID gives a random UUID.
	NewID func() string
	Now   func() time.Time
	Log   *slog.Logger
}

// TLS says how the broker is met. Certificates are always verified: against
// CAFile, or the system's authorities where there is none.
type TLS struct {
	Enabled        bool   // ssl
	CAFile         string // ssl_ca_file
	CertFile       string // ssl_cert_file
	KeyFile        string // ssl_key_file
	VerifyHostname bool   // ssl_enforce_hostname_verification
}

// override gives the options with those of the URL on top. Options for queues
// are not among them: they belong to who declares the queue.
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
				return o, fault.Field("transport_url", "%s is %q; it is a number of whole seconds", name, value)
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
		} else if !oslo.IsQueueOption(name) {
			return o, fault.Field("transport_url", "%s", fault.Unknown("option", name, known))
		}
	}
	return o, nil
}

func (o Options) withDefaults() Options {
	o.Heartbeat = cmp.Or(o.Heartbeat, time.Minute)
	o.RetryInterval = cmp.Or(o.RetryInterval, time.Second)
	o.RetryBackoff = cmp.Or(o.RetryBackoff, 2*time.Second)
	o.IntervalMax = cmp.Or(o.IntervalMax, 30*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

// pause is how long to wait before the attempt after n failed ones.
func (o Options) pause(n int) time.Duration {
	return min(o.RetryInterval+time.Duration(n-1)*o.RetryBackoff, o.IntervalMax)
}

// config gives the client's side of TLS, or nil without it.
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
			return nil, fault.Field("ssl_ca_file", "%s holds no certificate", t.CAFile)
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
		// The library's own check is all or nothing, so it is replaced by one
		// of the chain alone.
		c.InsecureSkipVerify = true
		c.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(c.RootCAs, state) }
	}
	return c, nil
}

func verifyChain(roots *x509.CertPool, state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the broker shows no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		intermediates.AddCert(certificate)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates})
	if err != nil {
		return fmt.Errorf("the broker's certificate: %w", err)
	}
	return nil
}
