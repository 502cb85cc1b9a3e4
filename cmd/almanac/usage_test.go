// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// streams answers GET /v1/events with one stream after the other, and then denies it. It records
// where the client resumes.
func streams(a *api, texts ...string) *[]string {
	var resumed []string
	a.mux.HandleFunc("GET /v1/events", func(w http.ResponseWriter, r *http.Request) {
		resumed = append(resumed, r.Header.Get("Last-Event-ID"))
		if len(texts) == 0 {
			fail(http.StatusForbidden, "denied", "the rule events:get forbids it")(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, texts[0])
		texts = texts[1:]
	})
	return &resumed
}

const (
	ownChange    = `{"change":"created","start":"2026-12-01T10:00:00Z","end":"2026-12-01T12:00:00Z","hosts":["n1","n2"],"mine":true,"reservation_id":"r-1","name":"a\u001bb","project_id":"p","status":"pending"}`
	othersChange = `{"change":"changed","start":"2026-12-01T10:00:00Z","end":"2026-12-01T12:00:00Z","hosts":["n1"],"mine":false}`
)

func TestEventsAreFollowedThroughTheEndOfAStream(t *testing.T) {
	a := newAPI(t)
	resumed := streams(a,
		"retry: 2000\nid: 1\n\nid: 2\nevent: calendar\ndata: "+ownChange+"\n\n",
		"\nid: 3\nevent: calendar\ndata: "+othersChange+"\n\nid: 4\n\n",
		"\nid: 5\nevent: hosts\ndata: {\"hosts\":[\"n3\"]}\n\nid: 6\nevent: hosts\ndata: {\"hosts\":[]}\n\nid: 7\nevent: reset\ndata: {\"reason\":\"why\"}\n\n",
	)
	got := almanac(t, a, "events", "follow", "--after", "0")
	want := `calendar created from 2026-12-01T10:00:00Z to 2026-12-01T12:00:00Z reservation r-1 "a\x1bb" pending on n1, n2
calendar changed from 2026-12-01T10:00:00Z to 2026-12-01T12:00:00Z on n1
hosts changed: n3
hosts changed: many
reset {"reason":"why"}
`
	if diff := cmp.Diff(want, got.stdout); diff != "" || got.code != exitDenied {
		t.Errorf("code %d, stdout (-want +got):\n%s", got.code, diff)
	}
	if want := []string{"0", "2", "4", "7"}; !slices.Equal(want, *resumed) {
		t.Errorf("it resumes after %q, want %q", *resumed, want)
	}
}

func TestEventsAsJSONAreOneObjectInEachLine(t *testing.T) {
	a := newAPI(t)
	streams(a, "id: 2\nevent: calendar\ndata: "+othersChange+"\n\n")
	got := almanac(t, a, "events", "follow", "-f", "json")
	if want := `{"id":"2","event":"calendar","data":` + othersChange + "}\n"; got.stdout != want {
		t.Errorf("stdout is %s, want %s", got.stdout, want)
	}
}

func TestAnAnswerThatIsNoStreamIsTold(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/events", http.StatusOK, "hello")
	if got := almanac(t, a, "events", "follow"); got.code != exitFailed {
		t.Errorf("got %+v", got)
	}
}
