// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/reservation"
)

func TestTheVersionsSayWhereTheyAre(t *testing.T) {
	c := start(t, setup{})
	type version struct {
		ID, Status string
		Links      []struct{ Rel, Href string }
	}
	all := want[struct {
		Name, Release string
		Versions      []version
	}](t, c.nobody.get("/"), http.StatusOK)
	one := want[struct{ Version version }](t, c.nobody.get("/v1"), http.StatusOK).Version
	if all.Name != "almanac" || all.Release != "1.2.3" || len(all.Versions) != 1 || !cmp.Equal(all.Versions[0], one) {
		t.Errorf("all are %+v, one is %+v", all, one)
	}
	if one.ID != "v1.0" || one.Status != "CURRENT" || len(one.Links) != 1 || one.Links[0].Rel != "self" || one.Links[0].Href != c.url+"/v1" {
		t.Errorf("got %+v", one)
	}
}

func TestTheMetricsCountWhatWasAsked(t *testing.T) {
	c := start(t, setup{})
	c.demo.book(`{"name": "r", "duration": 60}`)
	c.demo.book(`{"name": "r", "duration": 3600}`)
	c.wait(0)
	c.wait(60)
	c.demo.post("/v1/reservations", `{"name": "r", "duration": 60, "quantity": 4}`)
	c.demo.post("/v1/reservations", `{"name": "r", "duration": 60, "quantity": 0}`)
	c.demo.get("/v1/hosts/A")
	c.demo.get("/v1/hosts/B")
	c.demo.get("/v1/nothing/" + uuid.NewString())
	c.demo.send("BREW", "/v1/hosts", "")

	a := c.nobody.get("/metrics")
	families, err := new(expfmt.NewTextParser(model.UTF8Validation)).TextToMetricFamilies(bytes.NewReader(a.body))
	must(t, err)
	got := make(map[string]float64)
	for name, family := range families {
		for _, m := range family.Metric {
			labels := []string{}
			for _, l := range m.Label {
				labels = append(labels, l.GetValue())
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			got[name+" "+strings.Join(labels, " ")] = value
		}
	}
	counted := map[string]float64{
		"almanac_reservations pending": 0, "almanac_reservations starting": 0, "almanac_reservations active": 1, "almanac_reservations ending": 0, "almanac_reservations waiting": 0,
		"almanac_auth_failures_total unauthorized":                    0,
		"almanac_auth_failures_total denied":                          0,
		"almanac_auth_failures_total unavailable":                     0,
		"almanac_database_up ":                                        1,
		"almanac_event_streams ":                                      0,
		"almanac_event_streams_dropped_total ":                        0,
		"almanac_http_rate_limited_total ":                            0,
		"almanac_http_requests_total 201 POST /v1/reservations":       2,
		"almanac_http_requests_total 409 POST /v1/reservations":       1,
		"almanac_http_requests_total 400 POST /v1/reservations":       1,
		"almanac_http_requests_total 200 GET /v1/hosts/:name":         2,
		"almanac_http_requests_total 404 none none":                   1,
		"almanac_http_requests_total 405 none none":                   1,
		"almanac_http_request_duration_seconds POST /v1/reservations": 4,
		"almanac_http_request_duration_seconds GET /v1/hosts/:name":   2,
		"almanac_http_request_duration_seconds none none":             2,
	}
	for _, constraint := range reservation.Constraints {
		counted["almanac_refusals_total "+string(constraint)] = 0
	}
	counted["almanac_refusals_total pool"] = 1
	if diff := cmp.Diff(counted, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	problems, err := promlint.New(bytes.NewReader(a.body)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("the metrics are not well named: %v, %v", problems, err)
	}
}

func TestEveryAnswerHasAnIDOfItsOwnThatTheLogKnows(t *testing.T) {
	c := start(t, setup{})
	seen := make(map[string]bool)
	for _, path := range []string{"/", "/healthcheck", "/metrics", "/v1/hosts", "/v1/hosts/nothing", "/v1/nothing", "/v1/hosts?limit=0"} {
		id := c.demo.get(path).header.Get("X-Openstack-Request-Id")
		if !strings.HasPrefix(id, "req-") || seen[id] {
			t.Errorf("%s has id %q", path, id)
		}
		if seen[id] = true; !strings.Contains(c.log.String(), "request_id="+id) {
			t.Errorf("the log does not know %s of %s", id, path)
		}
	}
}

func TestTheIDOfTheCallerIsLoggedWhereItIsOne(t *testing.T) {
	c := start(t, setup{})
	given := "req-" + uuid.NewString()
	own := c.demo.send("GET", "/v1/hosts", "", "X-Openstack-Request-Id", given).header.Get("X-Openstack-Request-Id")
	if own == given {
		t.Error("the caller's id is returned as Almanac's own")
	}
	if line := "request_id=" + own; !strings.Contains(c.log.String(), line) || !strings.Contains(c.log.String(), "global_request_id="+given) {
		t.Errorf("the log does not have both ids:\n%s", c.log)
	}
	c.demo.send("GET", "/v1/hosts", "", "X-Openstack-Request-Id", "req-forged status=200")
	if strings.Contains(c.log.String(), "forged") {
		t.Error("the log has what is no id")
	}
}

func TestAPageOfAnotherSiteChangesNothing(t *testing.T) {
	c := start(t, setup{})
	r := c.admin.book(`{"name": "r", "duration": 60}`)
	before := c.everything()
	for name, headers := range map[string][]string{
		"origin": {"Origin", "https://elsewhere.example"}, "cross-site": {"Sec-Fetch-Site", "cross-site"}, "same site": {"Sec-Fetch-Site", "same-site"},
	} {
		for call, b := range bodies {
			path := strings.Replace(b.path, "ID", r.ID, 1)
			if a := c.admin.send(b.method, path, b.right, headers...); a.status != http.StatusForbidden {
				t.Errorf("%s, %s: got %v", name, call, a)
			}
		}
		wantError(t, c.admin.send("DELETE", "/v1/reservations/"+r.ID, "", headers...), http.StatusForbidden)
		if a := c.admin.send("GET", "/v1/hosts", "", headers...); a.status != http.StatusOK || a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: reading answers %v with %v", name, a.status, a.header)
		}
	}
	if diff := cmp.Diff(before, c.everything()); diff != "" {
		t.Errorf("something changed:\n%s", diff)
	}
	own := c.admin.send("POST", "/v1/reservations", `{"name": "r", "duration": 60}`, "Origin", c.url, "Sec-Fetch-Site", "same-origin")
	if own.status != http.StatusCreated {
		t.Errorf("a page of its own: got %v", own)
	}
}

func TestTheExamplesOfTheDocumentWork(t *testing.T) {
	hosts, err := inventory.FileSource("../../etc/almanac/hosts.yaml").Hosts(t.Context())
	must(t, err)
	document := openContract(t).document
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.RequestBody == nil {
				continue
			}
			media := operation.RequestBody.Value.Content["application/json"]
			examples := map[string]any{"": media.Example}
			for name, example := range media.Examples {
				examples[name] = example.Value.Value
			}
			for name, example := range examples {
				if example == nil {
					continue
				}
				t.Run(operation.OperationID+" "+name, func(t *testing.T) {
					c := start(t, setup{hosts: hosts, adjust: func(o *api.Options) { o.Demo = demoCloud{} }})
					r := c.admin.book(`{"name": "r", "quantity": 2, "start_time": "2026-12-01T10:00:00Z", "duration": "2h30m", "host_properties": ["=", "$gpu", "a100"]}`)
					id := r.ID
					if strings.Contains(path, "series") {
						id = c.admin.series("").ID
					}
					at := strings.NewReplacer("{id}", id, "/hosts/{name}", "/hosts/gpu-01", "{name}", "rack").Replace(path)
					if a := c.admin.send(method, at, encode(t, example)); a.status >= 300 {
						t.Errorf("got %v", a)
					}
				})
			}
		}
	}
}
