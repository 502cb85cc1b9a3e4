// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

// The later pages are about the time of the first, although it is the default and the clock moves on.
func TestTheCalendarIsReadPageByPage(t *testing.T) {
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		page := v1.Calendar{Start: noon, End: noon.Add(time.Hour), Hosts: []v1.HostCalendar{{Host: "a"}}, Next: "a"}
		if r.URL.Query().Get("marker") == "a" {
			page.Hosts[0].Host, page.Next = "b", ""
		}
		_ = json.NewEncoder(w).Encode(page)
	}))
	defer server.Close()
	c, err := client.New(client.Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Calendar(t.Context(), client.CalendarQuery{PageSize: 1})
	if err != nil || len(got.Hosts) != 2 || got.Hosts[1].Host != "b" || got.Next != "" || got.Start != noon {
		t.Errorf("got %+v, %v", got, err)
	}
	if want := []string{"limit=1", "end=2026-12-01T13%3A00%3A00Z&limit=1&marker=a&start=2026-12-01T12%3A00%3A00Z"}; !slices.Equal(want, asked) {
		t.Errorf("it asks %q, want %q", asked, want)
	}
}
