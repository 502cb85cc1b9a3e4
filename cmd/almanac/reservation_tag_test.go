// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// versioned is an API with one reservation, which is changed only if a request expects the tag that it has.
func versioned(t *testing.T, tag string) *api {
	t.Helper()
	a := newAPI(t)
	r := v1.Reservation{ID: "r-1", Name: "training", Status: "pending"}
	a.on("GET /v1/reservations", http.StatusOK, v1.Reservations{Reservations: []v1.Reservation{r}})
	a.mux.HandleFunc("/v1/reservations/r-1", func(w http.ResponseWriter, q *http.Request) {
		if expected := q.Header.Get("If-Match"); q.Method != http.MethodGet && expected != tag && expected != "*" {
			fail(http.StatusPreconditionFailed, "precondition", "the reservation has changed since it was read")(w, q)
			return
		}
		w.Header().Set("ETag", tag)
		answerWith(http.StatusOK, r)(w, q)
	})
	return a
}

func TestAReservationIsShownWithItsTag(t *testing.T) {
	const tag = `"7-0123456789abcdef"`
	a := versioned(t, tag)
	for _, what := range []string{"r-1", "training"} {
		if got := almanac(t, a, "reservation", "show", what, "-f", "value", "-c", "etag"); got.stdout != tag+"\n" {
			t.Errorf("show %s: %+v", what, got)
		}
	}
	if got := almanac(t, a, "reservation", "show", "training", "-f", "json"); !strings.Contains(got.stdout, `"etag": "\"7-0123456789abcdef\""`) {
		t.Errorf("as JSON: %s", got.stdout)
	}
}

func TestACommandChangesOnlyWhatHasTheTag(t *testing.T) {
	a := versioned(t, `"7-0123456789abcdef"`)
	for _, command := range []string{
		"reservation change r-1 --name x", "reservation change r-1 --name x --dry-run", "reservation extend r-1 --by 1h", "reservation extend r-1 --by 1h --dry-run",
		"reservation delete r-1 --yes", "reservation delete r-1 --dry-run",
	} {
		for _, tag := range []string{`"7-0123456789abcdef"`, "7-0123456789abcdef", "*"} {
			if got := almanac(t, a, append(strings.Fields(command), "--if-match", tag)...); got.code != exitDone {
				t.Errorf("%s --if-match %s: %+v", command, tag, got)
			}
		}
		almanac(t, a, append(strings.Fields(command), "--if-match", "6-0123456789abcdef")...).wantFailure(t, exitNoRoom, "has changed since it was read")
	}
	for _, none := range []string{"", "abc", "null", "7"} { // as of a command that failed, or another field
		almanac(t, a, "reservation", "delete", "training", "--if-match", none).wantFailure(t, exitUsage, "is no ETag of a reservation")
	}
	almanac(t, a, "reservation", "delete", "r-1", "training", "--if-match", "7-0123456789abcdef").wantFailure(t, exitUsage, "--if-match")
}
