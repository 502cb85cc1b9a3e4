// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
)

// The files have what each deployment tool writes for a service like Placement or Blazar: its
// sections and options, at addresses where nobody listens.
func TestWhatDeploymentToolsWriteForAServiceStartsAlmanacWithOneNotice(t *testing.T) {
	for tool, meaningless := range map[string][]string{
		"kolla":    {"[oslo_concurrency] lock_path", "memcached_servers", "[cache] backend", "[profiler] enabled", "heartbeat_in_pthread"},
		"helm":     {"log_config_append, use_syslog", "rabbit_ha_queues", "rabbit_quorum_queues", "auth_version"},
		"puppet":   {"logging_context_format_string", "mysql_sql_mode", "kombu_reconnect_delay", "[cors] allowed_origin", "[oslo_reports] log_dir", "[oslo_limit] auth_type", "[service_user] send_service_user_token", "wsgi_log_format"},
		"devstack": {"use_journal", "log_color", "enforce_new_defaults"},
	} {
		t.Run(tool, func(t *testing.T) {
			folder := built.NewFolder(t, built.TenHosts)
			conf := fromTool(t, folder, tool)

			// The file's own database, which nobody connects to.
			validate := built.Command(t.Context(), folder)
			validate.Env = slices.DeleteFunc(validate.Env, func(v string) bool { return strings.HasPrefix(v, "OS_DATABASE__") })
			validate.Env = append(validate.Env, "OS_DEFAULT__LOG_DIR=", "OS_DEFAULT__LOG_FILE=") // the folders of another machine
			validate.Args = append(validate.Args, "--config-file", conf, "config", "validate")
			out, err := validate.CombinedOutput()
			if text := string(out); err != nil || strings.Count(text, "notice: ") != 1 || strings.Contains(text, "warning: ") {
				t.Errorf("validate (%v):\n%s", err, text)
			}

			// The embedded database, and the log on standard error.
			process := built.Command(context.WithoutCancel(t.Context()), folder, "OS_DEFAULT__LOG_DIR=", "OS_DEFAULT__LOG_FILE=")
			process.Args = append(process.Args, "--config-file", conf)
			s := built.Serve(t, process)
			var notices []string
			for line := range strings.Lines(s.Log.String()) {
				if strings.Contains(line, "options that mean nothing to Almanac are ignored") {
					notices = append(notices, line)
				}
				if strings.Contains(line, "configuration: ") {
					t.Errorf("a warning: %s", line)
				}
			}
			if len(notices) != 1 {
				t.Fatalf("there are %d notices:\n%s", len(notices), strings.Join(notices, ""))
			}
			for _, option := range meaningless {
				if !strings.Contains(notices[0], option) {
					t.Errorf("the notice lacks %s: %s", option, notices[0])
				}
			}
			s.Stop(t)
		})
	}
}

// fromTool copies the file of a deployment tool to folder, and beside it a bundle of authorities and
// a client's certificate with its key.
func fromTool(t *testing.T, folder, tool string) (name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "deployment", tool+".conf"))
	if err != nil {
		t.Fatal(err)
	}
	authority := httptest.NewTLSServer(nil)
	defer authority.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate().Raw})
	private, err := x509.MarshalPKCS8PrivateKey(authority.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	name = "almanac.conf"
	for file, content := range map[string][]byte{name: text, "ca.pem": certificate, "tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return name
}
