// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// versioned adds one thing to the API, which is changed only if a request expects the tag that it has.
func (a *api) versioned(path, kind, tag string, thing any) {
	a.mux.HandleFunc(path, func(w http.ResponseWriter, q *http.Request) {
		if expected := q.Header.Get("If-Match"); q.Method != http.MethodGet && expected != tag && expected != "*" {
			fail(http.StatusPreconditionFailed, "precondition", "the "+kind+" has changed since it was read")(w, q)
			return
		}
		w.Header().Set("ETag", tag)
		answerWith(http.StatusOK, thing)(w, q)
	})
}

// tagging is an API with one reservation, one group and one series, which have the tag.
func tagging(t *testing.T, tag string) *api {
	t.Helper()
	a := newAPI(t)
	r, g := named("r-1", "training", "pending"), cluster("g-1", "pending")
	a.on("GET /v1/reservations", http.StatusOK, v1.Reservations{Reservations: []v1.Reservation{r}})
	a.on("GET /v1/groups", http.StatusOK, v1.Groups{Groups: []v1.Group{g}})
	a.versioned("/v1/reservations/r-1", "reservation", tag, r)
	a.versioned("/v1/groups/g-1", "group", tag, g)
	a.on("GET /v1/series", http.StatusOK, v1.SeriesList{Series: []v1.Series{{ID: "s-1", Name: "lab"}}})
	a.versioned("/v1/series/s-1", "series", tag, lab())
	return a
}

func TestWhatCanBeChangedIsShownWithItsTag(t *testing.T) {
	const tag = `"7-0123456789abcdef"`
	a := tagging(t, tag)
	for kind, names := range map[string][]string{"reservation": {"r-1", "training"}, "group": {"g-1", "cluster"}, "series": {"s-1", "lab"}} {
		for _, what := range names {
			if got := almanac(t, a, kind, "show", what, "-f", "value", "-c", "etag"); got.stdout != tag+"\n" {
				t.Errorf("show %s: %+v", what, got)
			}
			if got := almanac(t, a, kind, "show", what, "-f", "json"); !strings.Contains(got.stdout, `"etag": "\"7-0123456789abcdef\""`) || !strings.Contains(got.stdout, `"id": "`+names[0]+`"`) {
				t.Errorf("%s as JSON: %s", what, got.stdout)
			}
		}
	}
}

func TestACommandChangesOnlyWhatHasTheTag(t *testing.T) {
	a := tagging(t, `"7-0123456789abcdef"`)
	for _, command := range []string{
		"reservation change r-1 --name x", "reservation change r-1 --name x --dry-run", "reservation extend r-1 --by 1h", "reservation extend r-1 --by 1h --dry-run",
		"reservation confirm r-1", "reservation confirm r-1 --dry-run",
		"reservation delete r-1 --yes", "reservation delete r-1 --dry-run",
		"group change g-1 --name x", "group change g-1 --name x --dry-run", "group delete g-1 --yes", "group delete g-1 --dry-run", "group delete cluster --yes",
		"series change s-1 --name x", "series change s-1 --name x --dry-run", "series delete s-1 --yes", "series delete s-1 --dry-run", "series delete lab --yes",
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
		almanac(t, a, "group", "delete", "cluster", "--if-match", none).wantFailure(t, exitUsage, "is no ETag of a group", "'almanac group show' prints it")
	}
	of := tagging(t, `"1.2.7-0123456789abcdef"`)
	for _, tag := range []string{`"1.2.7-0123456789abcdef"`, "1.2.7-0123456789abcdef"} { // a group's
		almanac(t, of, "group", "change", "g-1", "--name", "x", "--if-match", tag).wantDone(t)
	}
	almanac(t, a, "reservation", "delete", "r-1", "training", "--if-match", "7-0123456789abcdef").wantFailure(t, exitUsage, "--if-match")
}
