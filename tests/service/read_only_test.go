// SPDX-License-Identifier: Apache-2.0

package service

import (
	"database/sql"
	"net/http"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

func TestADatabaseThatTurnsReadOnlyIsNamedAndRead(t *testing.T) {
	server := labtest.StartMariaDB(t)
	admin, err := sql.Open("mysql", server.DSN("almanac"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	execute := func(statement string) {
		t.Helper()
		if _, err := admin.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	execute("CREATE USER plain IDENTIFIED BY 'plain'")
	execute("GRANT ALL ON almanac.* TO plain")
	folder := built.NewFolder(t, built.TenHosts)
	settings := []string{"OS_DATABASE__CONNECTION=" + strings.Replace(server.URL("almanac"), "almanac:almanac@", "plain:plain@", 1)}
	if out, failed := built.Almanacd(t, folder, settings, "db", "sync"); failed {
		t.Fatal(out)
	}
	s := built.Start(t, folder, settings...)
	book := func() (status int, text string) {
		answer, err := http.Post(s.URL+"/v1/reservations", "application/json", strings.NewReader(`{"name": "r", "quantity": 1, "duration": 3600}`))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var b strings.Builder
		_ = answer.Write(&b)
		return answer.StatusCode, b.String()
	}
	if status, text := book(); status != http.StatusCreated {
		t.Fatal(text)
	}
	execute("SET GLOBAL read_only = 1")
	if status, text := book(); status != http.StatusServiceUnavailable || !strings.Contains(text, "--read-only") {
		t.Errorf("a booking: %s", text)
	}
	readiness := func() string {
		answer, err := http.Get(s.URL + "/v1/readiness")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var b strings.Builder
		_ = answer.Write(&b)
		return b.String()
	}
	built.Eventually(t, "the readiness does not name the database", func() bool {
		text := readiness()
		return strings.Contains(text, "503 Service Unavailable") && strings.Contains(text, `"database writable","ok":false`) && strings.Contains(text, "--read-only")
	})
	built.Eventually(t, "the log does not have the server's words", func() bool {
		return strings.Contains(s.Log.String(), `part="database writable"`) && strings.Contains(s.Log.String(), "--read-only")
	})
	if text := built.Get(t, s.URL+"/metrics", ""); !strings.Contains(text, "almanac_database_read_only 1\n") || !strings.Contains(text, "almanac_database_up 1\n") {
		t.Error("the metrics do not name it")
	}
	if text := built.Get(t, s.URL+"/healthcheck", ""); text != "OK\n" {
		t.Errorf("the health check: %s", text)
	}
	if list := built.Get(t, s.URL+"/v1/reservations", ""); !strings.Contains(list, `"name":"r"`) {
		t.Errorf("a list: %s", list)
	}
	other := built.Start(t, built.NewFolder(t, built.TenHosts), settings...) // a restart meanwhile
	if list := built.Get(t, other.URL+"/v1/reservations", ""); !strings.Contains(list, `"name":"r"`) {
		t.Errorf("a list of a replica that starts: %s", list)
	}
	other.Stop(t)
	execute("SET GLOBAL read_only = 0")
	built.Eventually(t, "the service does not book again", func() bool { status, _ := book(); return status == http.StatusCreated })
	built.Eventually(t, "the readiness still names the database", func() bool { return !strings.Contains(readiness(), `"database writable","ok":false`) })
	s.Stop(t)
}
