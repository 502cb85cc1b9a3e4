// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/tests/repository"
)

// withoutAlert lists the metrics that no alert names, and why.
var withoutAlert = []struct{ metrics, why string }{
	{
		`reservations refusals_total http_request_duration_seconds event_streams event_streams_dropped_total pool_hosts besteffort_vms cloud_calls_total
		energy_hosts energy_halted energy_host_seconds_off_total energy_core_seconds_off_total energy_core_seconds_idle_total energy_saved_joules energy_boots_total
		image_transfers_total image_transfer_bytes_total image_transfer_seconds_total evictions_total packing_moves_total placement_duration_seconds`,
		"what a good value is depends on the cloud and its users",
	},
	{"usage_service_duration_seconds", "bookings that the service refuses or delays are its operators' business; AlmanacJobFailing tells when it is away"},
	{"job_last_success_timestamp_seconds", "work that one replica does succeeds at that replica only; job_failing has the alert"},
	{"tariff_timestamp_seconds tariff_fallbacks_total", "job_failing has the alert, if the tariff cannot be read or is stale; a window beyond its end is the tenants' choice"},
	{"holds_expired_total reservations_moved_total reservations_booked_from_waiting_total", "tenants choose to hold and not to confirm, to let others move what they have, and to wait"},
	{"webhook_deliveries_total", "a receiver that fails is its owner's business, whom the webhook shows it; job_failing has the alert if nothing is sent"},
	{"starts_late starts_late_seconds", "event_lag_seconds has the alert"},
	{"doctor_findings doctor_last_examination_timestamp_seconds", "the doctor runs on request; who asks reads the answer"},
	{"reservations_image_missing", "the owner learns it by an event; the reservation starts"},
	{"decisions_lost_total", "job_failing has the alert, before a decision is lost"},
	{"notification_outbox_size", "notification_outbox_age_seconds has the alert"},
}

func TestEachMetricHasItsRowAndItsAlertOrAReason(t *testing.T) {
	exist := map[string]bool{}
	isMetric := regexp.MustCompile(`^almanac_[a-z_]+[a-z]$`)
	for _, files := range productionFiles(t) {
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if e, is := n.(ast.Expr); is {
					if text, is := literalText(e); is && isMetric.MatchString(text) {
						exist[text] = true
					}
				}
				return true
			})
		}
	}
	guide := repository.Matches("(?m)^\\| `(almanac_\\w+)` \\|", repository.Read(t, repository.OperationsPage))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(exist)), guide); diff != "" {
		t.Errorf("metrics (-source +table of %s):\n%s", repository.OperationsPage, diff)
	}
	alerts := repository.Matches(`\b(almanac_[a-z_]+[a-z])\b`, repository.Read(t, repository.AlertsPath))
	alerting := map[string]bool{}
	for _, name := range alerts {
		alerting[name] = true
	}
	reasons := map[string]string{}
	for _, row := range withoutAlert {
		for _, name := range strings.Fields(row.metrics) {
			reasons["almanac_"+name] = row.why
		}
	}
	for name := range exist {
		if alerting[name] == (reasons[name] != "") {
			t.Errorf("%s is in an alert: %v; either it is in one, or withoutAlert states why not", name, alerting[name])
		}
		delete(reasons, name)
	}
	for name := range reasons {
		t.Errorf("withoutAlert names %s, which does not exist", name)
	}
}
