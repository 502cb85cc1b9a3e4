// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/tests/oslotest/memory"
)

// captured is a captured notification with some of its text replaced.
type captured struct {
	event string
	old   []string // old and new text in turns
}

func failed(replaced ...string) captured    { return captured{"instance.create.error", replaced} }
func succeeded(replaced ...string) captured { return captured{"instance.create.end", replaced} }
func service(replaced ...string) captured   { return captured{"service.update", replaced} }

// The times at which the captured builds fail on cmp-001 and succeed, without their date.
const (
	failedAt    = "07:32:44.540119"
	succeededAt = "07:32:54.463627"
)

func at(moment string) []string {
	return []string{`"timestamp": "2026-11-22 ` + failedAt, `"timestamp": "2026-11-22 ` + moment, `"timestamp": "2026-11-22 ` + succeededAt, `"timestamp": "2026-11-22 ` + moment}
}

// body returns the message on the wire.
func (n captured) body(t *testing.T) []byte {
	t.Helper()
	was, err := os.ReadFile(filepath.Join("testdata", "notification-"+n.event+".json"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(n.old...).Replace(string(was))
	if len(n.old) > 0 && text == string(was) {
		t.Fatalf("%v is not in %s", n.old, n.event)
	}
	body, err := json.Marshal(map[string]string{"oslo.version": "2.0", "oslo.message": text})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func (n captured) priority() string {
	if n.event == "instance.create.error" {
		return "error"
	}
	return "info"
}

// hearing is a broker with a cloud's events and the Builds that counts them.
type hearing struct {
	*testing.T
	broker *memory.Broker
	builds *Builds
	events *Events
	now    time.Time
}

func listen(t *testing.T) *hearing {
	h := &hearing{T: t, broker: memory.New(), now: time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)}
	h.builds = NewBuilds(func() time.Time { return h.now })
	h.events = NewEvents(h.broker, EventOptions{Queue: "almanac-one", Gather: time.Millisecond, Builds: h.builds})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.events.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		h.broker.Close()
	})
	<-h.events.Ready()
	return h
}

// hear sends a notification and returns after it was heard.
func (h *hearing) hear(n captured) {
	h.Helper()
	err := h.broker.Publish(h.Context(), oslo.Message{
		Exchange: oslo.Exchange{Name: "nova", Kind: oslo.Topic}, Key: "versioned_notifications." + n.priority(), Mandatory: true, Body: n.body(h.T),
	})
	if err != nil {
		h.Fatal(err)
	}
	<-h.events.Changed()
}

// counts returns the failed builds of cmp-001 to cmp-003 in the states of a reading. The
// nova-computes of the hosts in down do not run.
func (h *hearing) counts(down ...string) string {
	rows := make([]inventory.HostState, 3)
	for i := range rows {
		rows[i].Name, rows[i].Up = fmt.Sprintf("cmp-%03d", i+1), true
		for _, name := range down {
			rows[i].Up = rows[i].Up && rows[i].Name != name
		}
	}
	h.builds.apply(rows)
	var counts []int64
	for _, row := range rows {
		counts = append(counts, row.FailedBuilds)
	}
	return fmt.Sprint(counts)
}

func TestFailedBuildsAreCountedAsNovaComputeCountsThem(t *testing.T) {
	on2, on3 := []string{"nova-compute:cmp-001", "nova-compute:cmp-002"}, []string{"nova-compute:cmp-004", "nova-compute:cmp-003"}
	open := []string{`"disabled": true`, `"disabled": false`, `"host": "cmp-003"`, `"host": "cmp-001"`}
	for name, tc := range map[string]struct {
		heard []captured
		want  string
	}{
		"each counts for its host":             {[]captured{failed(), failed(), failed(on2...)}, "[2 1 0]"},
		"one that does not fail ends it":       {[]captured{failed(on2...), failed(), succeeded(append(at("07:32:45.000000"), "nova-compute:cmp-004", "nova-compute:cmp-001")...)}, "[0 1 0]"},
		"and another host's does not":          {[]captured{failed(), succeeded(on3...)}, "[1 0 0]"},
		"after which it begins anew":           {[]captured{succeeded("nova-compute:cmp-004", "nova-compute:cmp-001"), failed(at("07:40:00.000000")...)}, "[1 0 0]"},
		"failures from before it come late":    {[]captured{succeeded("nova-compute:cmp-004", "nova-compute:cmp-001"), failed()}, "[0 0 0]"},
		"the sender knows the host":            {[]captured{failed(`"host": "cmp-001"`, `"host": null`)}, "[1 0 0]"},
		"what a server group forbids is none":  {[]captured{failed(`"exception": "RuntimeError"`, `"exception": "GroupAffinityViolation"`)}, "[0 0 0]"},
		"what nova-compute does not tell":      {[]captured{failed("nova-compute:cmp-001", "nova-conductor:cmp-001")}, "[0 0 0]"},
		"hosts that nobody knows":              {[]captured{failed("nova-compute:cmp-001", "nova-compute:nobody")}, "[0 0 0]"},
		"a host that is opened begins anew":    {[]captured{failed(), service(open...)}, "[0 0 0]"},
		"one that is closed keeps its count":   {[]captured{failed(), service(`"host": "cmp-003"`, `"host": "cmp-001"`)}, "[1 0 0]"},
		"a failure without a readable payload": {[]captured{failed(`"fault": {`, `"fault": 5, "other": {`)}, "[1 0 0]"},
	} {
		t.Run(name, func(t *testing.T) {
			h := listen(t)
			for _, n := range tc.heard {
				h.hear(n)
			}
			for range 2 { // reading does not change the counts
				if diff := cmp.Diff(tc.want, h.counts()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			if len(h.builds.hosts) > 3 {
				t.Errorf("counts are kept for %v", h.builds.hosts)
			}
		})
	}
}

func TestNothingIsHeldAgainstAHostForEver(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(h *hearing)
		want    string
	}{
		"its nova-compute has started anew": {func(h *hearing) { h.builds.Forget("cmp-001") }, "[0 0 0]"},
		"its nova-compute was down":         {func(h *hearing) { h.counts("cmp-001") }, "[0 0 0]"},
		"another's was down":                {func(h *hearing) { h.counts("cmp-002") }, "[1 0 0]"},
		"almost a day has passed":           {func(h *hearing) { h.now = h.now.Add(remembered) }, "[1 0 0]"},
		"a day has passed":                  {func(h *hearing) { h.now = h.now.Add(remembered + 1) }, "[0 0 0]"},
		"a day, and it fails again": {func(h *hearing) {
			h.now = h.now.Add(remembered + 1)
			h.hear(failed())
		}, "[1 0 0]"},
	} {
		h := listen(t)
		h.hear(failed())
		tc.happens(h)
		if got := h.counts(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestWithoutNotificationsNothingIsCounted(t *testing.T) {
	var none *Builds
	none.Forget("cmp-001")
	none.observe(oslo.Notification{EventType: "instance.create.error", PublisherID: "nova-compute:cmp-001"})
	rows := []inventory.HostState{{Name: "cmp-001", Up: true}}
	none.apply(rows)
	if rows[0].FailedBuilds != 0 {
		t.Errorf("got %+v", rows[0])
	}
}
