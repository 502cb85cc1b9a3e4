// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Prometheus starts a Prometheus that scrapes target, "host:port", every second, and returns its
// address once the query has a result.
func Prometheus(t testing.TB, target, query string) string {
	t.Helper()
	here := private(t, folder(t), "prometheus")
	config := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: test\n  static_configs: [{targets: ['%s']}]\n", target)
	if err := os.WriteFile(filepath.Join(here, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1))
	p, err := launch(nil, filepath.Join(here, "log"), "prometheus", "--config.file="+filepath.Join(here, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(here, "data"), "--web.listen-address="+address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	err = p.answers(patience, func() error {
		answer, err := http.Get("http://" + address + "/api/v1/query?query=" + query)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		body := make([]byte, 4096)
		n, _ := answer.Body.Read(body)
		if text := string(body[:n]); !strings.Contains(text, `"value":`) {
			return fmt.Errorf("prometheus has nothing for %s yet: %s", query, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + address
}
