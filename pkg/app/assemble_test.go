// SPDX-License-Identifier: Apache-2.0

package app

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/config"
	imagectl "github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// besideACloud returns the process of a configuration in which every feature is on. Neither its
// cloud nor its message brokers answer.
func besideACloud(t *testing.T) (p process, hosts inventory.Source) {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "hosts.yaml")
	if err := os.WriteFile(file, []byte("hosts:\n  - {name: a, vcpus: 1, memory_mb: 1, disk_gb: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const nowhere = "rabbit://u:p@127.0.0.1:1/"
	c, err := config.Load(nil, nil, map[string]string{
		"OS_DATABASE__CONNECTION": "sqlite:///" + filepath.Join(folder, "almanac.db"), "OS_INVENTORY__SOURCE": "openstack",
		"OS_KEYSTONE_AUTHTOKEN__AUTH_URL": "http://127.0.0.1:1/v3", "OS_KEYSTONE_AUTHTOKEN__USERNAME": "u", "OS_KEYSTONE_AUTHTOKEN__PASSWORD": "p",
		"OS_KEYSTONE_AUTHTOKEN__PROJECT_NAME": "service", "OS_API__AUTH_STRATEGY": "keystone",
		"OS_DEFAULT__TRANSPORT_URL": nowhere, "OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER": "messagingv2",
		"OS_NOVA__TRANSPORT_URL": nowhere + "nova", "OS_NOVA__NOTIFICATIONS": "true", "OS_NOVA__CELL": "0a1b2c3d-0000-4000-8000-000000000000",
		"OS_SCHEDULER__MODE": config.ModeReplace, "OS_SCHEDULER__FORWARD_TRANSPORT_URL": nowhere + "behind",
		"OS_BESTEFFORT__ENABLED": "true", "OS_PACKING__CPU_NEED": "diagnostics", "OS_ENERGY__MODE": "auto",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(c); err != nil {
		t.Fatal(err)
	}
	return process{config: c, log: slog.New(slog.DiscardHandler), version: "test", machine: "m", replica: "m.1", clock: &clock{}}, inventory.FileSource(file)
}

// Only the first reading of the hosts needs the cloud, so the hosts come from a file here.
func TestTheFeaturesForACloudFitTogetherBeforeTheCloudAnswers(t *testing.T) {
	p, file := besideACloud(t)
	a := &App{process: p}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	added := func(f feature, err error) {
		t.Helper()
		if err := a.add(f, err); err != nil {
			t.Fatal(err)
		}
	}
	bus, f, err := openMessaging(p)
	added(f, err)
	cloud, f, err := openCloud(p)
	added(f, err)
	callers, f, err := openIdentity(p)
	added(f, err)
	db, f, err := openDatabase(t.Context(), p)
	added(f, err)
	added(openClock(t.Context(), p, db))
	powers, err := newPowers(p, db)
	if err != nil {
		t.Fatal(err)
	}
	source, f, err := openSource(p, bus, cloud, db, nil)
	added(f, err)
	hosts, f, err := openHosts(t.Context(), p, &hostSource{Source: file, changed: source.changed}, db, powers, nil)
	added(f, err)
	images := &imagectl.Known{}
	bookings, f, err := openBooking(t.Context(), p, bus, db, hosts, images, nil, nil, nil, &prices{})
	added(f, err)
	s := shared{p, bus, cloud, db, powers, source, hosts, bookings, nil}
	enforced, f, err := openEnforcement(t.Context(), s)
	added(f, err)
	if err := a.openFeatures(t.Context(), s, callers, enforced, images, nil); err != nil {
		t.Fatal(err)
	}

	answer := httptest.NewRecorder()
	a.face.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`almanac_job_failing{name="preparation"} 0`, `almanac_job_failing{name="healing"} 0`, `almanac_job_failing{name="images"} 0`,
		`almanac_job_failing{name="energy"} 0`, `almanac_job_failing{name="packing"} 0`, `almanac_job_failing{name="unheard claims"} 0`,
		`almanac_job_failing{name="best-effort work"} 0`, `almanac_job_failing{name="inventory service"} 0`,
		`almanac_messaging_connected{transport="nova scheduler"} 0`, `almanac_messaging_connected{transport="nova"} 0`,
		`almanac_cloud_calls_total{service="glance"} 0`, `almanac_notification_outbox_size 0`,
	} {
		if !strings.Contains(answer.Body.String(), "\n"+want+"\n") {
			t.Errorf("the metrics do not have %s", want)
		}
	}
	if t.Failed() {
		t.Log(answer.Body.String())
	}
}
