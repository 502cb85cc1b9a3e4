// SPDX-License-Identifier: Apache-2.0

package amqp_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

func TestOptionsThatCannotBeAreToldAtOnce(t *testing.T) {
	for text, want := range map[string]string{
		"memory://": "memory",
		"rabbit://h/?heartbeat_timeout_threshold=soon": "heartbeat_timeout_threshold",
		"rabbit://h/?ssl=perhaps":                      "ssl",
		"rabbit://h/?sll=true":                         `did you mean "ssl"`,
		"rabbit://h/?ssl=true&ssl_ca_file=/nowhere":    "cannot be read",
	} {
		u, err := oslo.ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = amqp.Open(u, amqp.Options{NewID: oslotest.NewID, Now: time.Now})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want Invalid with %q", text, err, want)
		}
	}
}

func TestTheBrokersCertificateIsVerified(t *testing.T) {
	url := labtest.RabbitMQ(t)
	certificate, authority := selfSigned(t, "broker.example")
	relay := newRelay(t, url)
	relay.close()
	relay.tls = &tls.Config{Certificates: []tls.Certificate{certificate}}
	relay.open(t)
	for name, tc := range map[string]struct{ options, wantTrouble string }{
		"by its authority":             {"ssl=true&ssl_ca_file=" + authority, ""},
		"and not without one":          {"ssl=true", "certificate"},
		"nor under another's name":     {"ssl=true&ssl_enforce_hostname_verification=true&ssl_ca_file=" + authority, "certificate"},
		"and there is no plain way in": {"ssl=false", "RabbitMQ"},
	} {
		t.Run(name, func(t *testing.T) {
			transport := opened(t, relay.url+"?"+tc.options)
			limit := patience
			if tc.wantTrouble != "" { // the transport tries again until the time is over
				limit = time.Second
			}
			if tc.wantTrouble == "certificate" {
				eventually(t, "the trouble is known", func() bool { return transport.Status().LastError != "" })
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			err := newClient(t, transport, patience).Cast(ctx, target, "echo", nil)
			if tc.wantTrouble == "" && err != nil {
				t.Error(err)
			}
			if tc.wantTrouble != "" && (err == nil || !strings.Contains(err.Error(), tc.wantTrouble)) {
				t.Errorf("got %v, want %q in it", err, tc.wantTrouble)
			}
		})
	}
}

// selfSigned returns a certificate for a host name or an IP address, and a file that contains it.
func selfSigned(t *testing.T, name string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}
