// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/almanac-cloud/almanac/tests/built"
)

func TestMetricsFollowTheConventionsOfPrometheus(t *testing.T) {
	s := built.Start(t, built.NewFolder(t, built.TenHosts))
	answer, err := http.Get(s.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	problems, err := promlint.New(answer.Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// A change waits for a broker that is unreachable.
func TestMetricsTellWhatAnOperatorMustKnow(t *testing.T) {
	folder := built.NewFolder(t, built.TenHosts)
	settings := []string{"OS_DEFAULT__TRANSPORT_URL=rabbit://u:p@127.0.0.1:1/", "OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER=messagingv2"}
	s := built.Start(t, folder, settings...)
	if _, stderr, exit := s.Almanac(t, "reservation", "create", "untold", "--duration", "1h"); exit != 0 {
		t.Fatal(stderr)
	}
	s.Stop(t)
	s = built.Start(t, folder, settings...)
	for _, want := range []string{
		`almanac_notification_outbox_size [1-9]`,
		`almanac_job_failing{name="follow"} 0`,
		`almanac_job_last_success_timestamp_seconds{name="follow"} [0-9.]+e\+09`,
		`almanac_replicas [1-9]`,
		`almanac_database_up 1`,
		`almanac_database_retries_total{reason="in_doubt"} 0`,
		`almanac_booking_conflicts_total 0`,
		`almanac_build_info{go_version="go[^"]+",version="development"} 1`,
		`almanac_messaging_connected{transport="notifications"} 0`,
	} {
		line := regexp.MustCompile("(?m)^" + want)
		built.Eventually(t, "the metrics do not have "+want, func() bool { return line.MatchString(built.Get(t, s.URL+"/metrics", "")) })
	}
}
