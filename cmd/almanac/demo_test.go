// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func TestAServerOfASimulatedCloudIsAskedForWithTheIDOfItsReservation(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/reservations/training", http.StatusNotFound, nil)
	a.on("GET /v1/reservations", http.StatusOK, v1.Reservations{Reservations: []v1.Reservation{{ID: "r-1", Name: "training", Status: "active"}}})
	a.on("POST /v1/demo/servers", http.StatusCreated, v1.DemoServer{ID: "s-1", Name: "train", Status: "BUILD", Host: "n-1"})
	made := almanac(t, a, "demo", "server", "create", "train", "--hint", "reservation=training", "--preemptible", "-f", "value", "-c", "Host")
	if made.code != exitDone || made.stdout != "n-1\n" {
		t.Errorf("got %d, %q, %q", made.code, made.stdout, made.stderr)
	}
	asks := a.asked()
	asked := asks[len(asks)-1].Body
	for _, want := range []string{`"reservation":"r-1"`, `"preemptible":true`, `"flavor":"small"`, `"image":"debian-13"`} {
		if !strings.Contains(asked, want) {
			t.Errorf("the request lacks %s: %s", want, asked)
		}
	}
	almanac(t, a, "demo", "server", "create", "train", "--hint", "reservation").wantFailure(t, exitUsage, "--hint", "KEY=VALUE")
}

func TestAServerWithoutAHostIsAFailureWithTheReason(t *testing.T) {
	a := newAPI(t)
	a.on("POST /v1/demo/servers", http.StatusCreated, v1.DemoServer{ID: "s-1", Status: "ERROR", Fault: "There is no room."})
	almanac(t, a, "demo", "server", "create", "train").wantFailure(t, exitNoRoom, "There is no room.")
}
