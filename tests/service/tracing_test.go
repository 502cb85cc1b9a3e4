// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/tracingtest"
)

// bookTraced makes a reservation, with more headers, and returns its id and that of the request.
func bookTraced(t *testing.T, s *built.Service, headers map[string]string) (id, requestID string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/reservations", strings.NewReader(`{"name": "traced", "duration": 3600}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for key, value := range headers {
		r.Header.Set(key, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var made struct {
		Reservation struct{ ID string }
		ID          string
	}
	if err := json.NewDecoder(answer.Body).Decode(&made); err != nil || answer.StatusCode != http.StatusCreated {
		t.Fatalf("%d, %v", answer.StatusCode, err)
	}
	return made.ID + made.Reservation.ID, answer.Header.Get("X-Openstack-Request-Id")
}

// The stop of the service sends what it has not sent yet.
func TestABookingIsOneTraceFromItsCallerToTheDatabase(t *testing.T) {
	const caller, step = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	collector := tracingtest.New(t)
	s := built.StartOn(t, built.TenHosts, "OS_TRACING__ENABLED=true", "OS_TRACING__ENDPOINT="+collector.URL)
	id, requestID := bookTraced(t, s, map[string]string{"traceparent": "00-" + caller + "-" + step + "-01", "X-Auth-Token": "hidden"})
	built.Get(t, s.URL+"/healthcheck", "")
	built.Get(t, s.URL+"/metrics", "")
	s.Stop(t)

	request, decide := collector.Named(t, "POST /v1/reservations"), collector.Named(t, "decide")
	wait, commit := collector.Named(t, "wait and commit"), collector.Named(t, "commit")
	if request.Parent != step || request.Facts["request_id"] != requestID || request.Facts["http.response.status_code"] != "201" {
		t.Errorf("the request is %+v", request)
	}
	if decide.Parent != request.ID || wait.Parent != request.ID || commit.Parent != wait.ID || commit.Facts["reservation_id"] != id {
		t.Errorf("the decision is %+v, the wait and the commit of %s are %+v and %+v", decide, id, wait, commit)
	}
	stored := false
	for _, each := range collector.Steps() {
		if each.Trace != caller {
			t.Errorf("%s is in another trace", each.Name)
		}
		stored = stored || each.Name == "statement INSERT" && each.Parent == commit.ID
		for key, value := range each.Facts {
			if strings.Contains(value, "hidden") || strings.Contains(value, "traced") {
				t.Errorf("%s tells %s = %s", each.Name, key, value)
			}
		}
	}
	if !stored {
		t.Error("no statement of the commit is in the trace")
	}
	if log := s.Log.String(); !strings.Contains(log, "trace_id="+caller) {
		t.Errorf("the log does not name the trace:\n%s", log)
	}
}

func TestWithoutACollectorRequestsAreAnsweredAndTheLogStatesIt(t *testing.T) {
	s := built.StartOn(t, built.TenHosts, "OS_TRACING__ENABLED=true", "OS_TRACING__ENDPOINT=http://127.0.0.1:1/v1/traces")
	for range 3 {
		bookTraced(t, s, nil)
	}
	s.Stop(t)
	if log := s.Log.String(); !strings.Contains(log, "could not send traces to [tracing] endpoint") {
		t.Errorf("the log has no notice:\n%s", log)
	}
}

func TestWithoutTracingTheLogHasNoTrace(t *testing.T) {
	s := built.StartOn(t, built.TenHosts)
	bookTraced(t, s, map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	if log := s.Log.String(); strings.Contains(log, "trace_id") {
		t.Errorf("the log names a trace:\n%s", log)
	}
}
