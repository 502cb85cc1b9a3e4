// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/config"
)

// healthcheck runs the command with an address as the configuration's.
func healthcheck(t *testing.T, address string) (string, error) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	command := newCommand(&service{environment: config.Environment([]string{"OS_API__HOST=" + host, "OS_API__PORT=" + port})})
	command.SetArgs([]string{"healthcheck", "--config-dir", t.TempDir()})
	command.SetOut(&out)
	err = command.ExecuteContext(t.Context())
	return out.String(), err
}

func TestTheHealthCheckFailsUnlessAlmanacdIsHealthy(t *testing.T) {
	status, path := http.StatusOK, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		w.WriteHeader(status)
		_, _ = w.Write([]byte("said\n"))
	}))
	defer server.Close()
	address := server.Listener.Addr().String()
	if out, err := healthcheck(t, address); err != nil || out != "said\n" || path != "/healthcheck" {
		t.Errorf("healthy: %q, %v, asked for %s", out, err, path)
	}
	status = http.StatusServiceUnavailable
	if _, err := healthcheck(t, address); err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "said") {
		t.Errorf("not healthy: %v", err)
	}
	server.Close()
	if _, err := healthcheck(t, address); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("without a server: %v", err)
	}
}
