// SPDX-License-Identifier: Apache-2.0

package amqp_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// modes are the kinds of queues of deployments, as options of a transport_url. oslo.messaging alone
// needs further options for some. since is the first release whose oslo.messaging has them.
var modes = []struct {
	name, options, osloAlone string
	since                    release.Release
	long                     bool // only in make test-long
}{
	{"oslo's defaults", "", "", release.Zed, false},
	{"durable queues", "amqp_durable_queues=true", "", release.Zed, true},
	{"quorum queues", "rabbit_quorum_queue=true&rabbit_quorum_delivery_limit=7", "", release.Zed, false},
	{"quorum queues for all", "rabbit_quorum_queue=true&rabbit_transient_quorum_queue=true", "", release.Caracal, true},
	{"a queue manager", "rabbit_quorum_queue=true&rabbit_transient_quorum_queue=true", "use_queue_manager=true&processname=peer", release.Caracal, true},
	{"streams", "rabbit_quorum_queue=true&rabbit_transient_quorum_queue=true&rabbit_stream_fanout=true", "rabbit_qos_prefetch_count=10", release.Caracal, false},
}

// mode is a virtual host of the test's own: its transport_url for Almanac and for oslo.messaging, and
// the options that both contain.
type mode struct {
	url, python string
	queues      oslo.QueueOptions
}

// eachMode runs a test in each mode; in make test-long with TLS, too.
func eachMode(t *testing.T, test func(t *testing.T, m mode)) {
	of, long := labtest.Release(t), os.Getenv("ALMANAC_TEST_LONG") != ""
	hosts := map[string]func(t *testing.T) string{"": func(t *testing.T) string { return labtest.RabbitMQ(t) + "?" }}
	if long {
		certificate, key, authority := certificateFiles(t)
		broker := labtest.StartTLSRabbitMQ(t, certificate, key)
		hosts[" with TLS"] = func(*testing.T) string { return broker.TLSURL(authority) + "&" }
	}
	for _, row := range modes {
		if of < row.since || row.long && !long {
			continue
		}
		for secrecy, host := range hosts {
			t.Run(row.name+secrecy, func(t *testing.T) {
				test(t, modeAt(t, host(t)+row.options, row.osloAlone))
			})
		}
	}
}

// modeAt returns the mode of a transport_url with options.
func modeAt(t *testing.T, url, osloAlone string) mode {
	t.Helper()
	m := mode{url: strings.TrimRight(url, "?&")}
	m.python = m.url
	if osloAlone != "" {
		m.python += "&" + osloAlone
	}
	u, err := oslo.ParseURL(m.url)
	if err != nil {
		t.Fatal(err)
	}
	if m.queues, err = u.Queues(oslo.QueueOptions{}); err != nil {
		t.Fatal(err)
	}
	return m
}

// certificateFiles returns PEM files of a broker.
func certificateFiles(t *testing.T) (certificate, key, authority string) {
	t.Helper()
	pair, authority := selfSigned(t, "127.0.0.1")
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	key = filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return authority, key, authority
}
