// SPDX-License-Identifier: Apache-2.0

package service

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
)

// The tour takes as long as its machines boot and its images move.
func TestTheTourOfTheDemoWorksAsPrinted(t *testing.T) {
	if testing.Short() {
		t.Skip("the tour takes minutes")
	}
	runSteps(t, "../../docs/demo.md", t.TempDir(), built.StartDemo(t, nil), 5*time.Minute)
}

// Each wait is bounded by minutes, so the hour of the reservation cannot pass in real time.
func TestAnHourOfAReservationPassesInAMinuteAtSpeedSixty(t *testing.T) {
	if testing.Short() {
		t.Skip("the hour takes a minute")
	}
	url := built.StartDemo(t, []string{"--speed", "60", "--busy=false"})
	almanac, err := client.New(client.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time {
		t.Helper()
		now, err := almanac.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	// The command counts from a time between these two, however long the computer takes to run it.
	before := now()
	out, err := exec.CommandContext(t.Context(), filepath.Join(built.Commands(), "almanac"), "--url", url,
		"reservation", "create", "hour", "--start", "now+30m", "--duration", "1h", "-f", "value", "-c", "ID").CombinedOutput()
	if err != nil {
		t.Fatalf("book: %v\n%s", err, out)
	}
	after := now()
	var r v1.Reservation
	for _, status := range []string{"active", "ended"} {
		built.Eventually(t, "the reservation is not "+status, func() bool {
			r, err = almanac.GetReservation(t.Context(), strings.TrimSpace(string(out)))
			return err == nil && r.Status == status
		})
	}
	at := map[string]time.Time{}
	for _, e := range r.Events {
		if e.DoneAt == nil || e.DoneAt.Before(e.Time) {
			t.Errorf("event %s of %v was carried out at %v", e.Type, e.Time, e.DoneAt)
		}
		at[e.Type] = e.Time
	}
	if got := at["end"].Sub(at["start"]); got != time.Hour {
		t.Errorf("the start and the end are %v apart", got)
	}
	if from := at["start"].Add(-30 * time.Minute); from.Before(before) || from.After(after) {
		t.Errorf("a start 30 minutes from now counts from %v; the command ran from %v to %v", from, before, after)
	}
}
