// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func TestAPartIsOneObjectAndNothingElse(t *testing.T) {
	p := &process{}
	for text, says := range map[string]string{
		`{"quantity": 2}`:                      "",
		` {"quantity": {"min": 1, "max": 3}} `: "",
		`{"quantity": 2}{"quantity": 1}`:       "write a --part for each",
		`{"quantity": 1} rubbish`:              "write a --part for each",
		`{"quanity": 1}`:                       "quanity",
		``:                                     "write one object",
		`[]`:                                   "write one object",
	} {
		_, err := p.part(text)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

// cluster is a group with one reservation.
func cluster(id, status string) v1.Group {
	return v1.Group{ID: id, Name: "cluster", Reservations: []v1.Reservation{named("r-"+id, "cluster", status)}}
}

func TestAGroupIsFoundByItsNameForEachCommand(t *testing.T) {
	for arguments, want := range map[string]string{
		"group show cluster":                       "GET /v1/groups/g-2", // with its tag
		"group change cluster --name d":            "PATCH /v1/groups/g-2",
		"group change cluster --before-end 10m":    "PATCH /v1/groups/g-2",
		"group change cluster --dry-run --end +5d": "PATCH /v1/groups/g-2?dry_run=true",
		"group delete cluster --yes":               "DELETE /v1/groups/g-2",
		"group delete cluster --dry-run":           "DELETE /v1/groups/g-2?dry_run=true",
		"reservation list --group cluster":         "GET /v1/reservations?lease_id=g-2&limit=1000",
	} {
		a := newAPI(t)
		a.on("GET /v1/groups", http.StatusOK, v1.Groups{Groups: []v1.Group{cluster("g-1", "ended"), cluster("g-2", "pending")}})
		a.on("GET /v1/groups/g-2", http.StatusOK, cluster("g-2", "pending"))
		a.on("PATCH /v1/groups/g-2", http.StatusOK, v1.Group{})
		a.on("DELETE /v1/groups/g-2", http.StatusOK, v1.GroupCancellation{})
		a.on("GET /v1/reservations", http.StatusOK, v1.Reservations{})
		almanac(t, a, strings.Fields(arguments)...).wantDone(t)
		if asked := a.lines(); asked[len(asked)-1] != want {
			t.Errorf("%s asks %v, last want %s", arguments, asked, want)
		}
	}
}
