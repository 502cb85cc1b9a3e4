// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// demoPage matches the address that almanacd demo prints.
var demoPage = regexp.MustCompile(`page: +(http://\S+)/dashboard/`)

// startDemo starts almanacd demo with arguments and settings, and returns its address.
func startDemo(t *testing.T, args []string, settings ...string) (url string) {
	t.Helper()
	c := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(commands, "almanacd"), append([]string{"demo", "--port", "0"}, args...)...)
	c.Env = append(os.Environ(), settings...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
		if err := c.Wait(); err != nil {
			t.Errorf("the demo ends with %v", err)
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := demoPage.FindStringSubmatch(lines.Text()); m != nil {
			return m[1]
		}
	}
	t.Fatal("the demo does not print its address")
	return ""
}

// The tour takes as long as its machines boot and its images move.
func TestTheTourOfTheDemoWorksAsPrinted(t *testing.T) {
	if testing.Short() {
		t.Skip("the tour takes minutes")
	}
	runSteps(t, "../docs/demo.md", t.TempDir(), startDemo(t, nil), 5*time.Minute)
}

// Each wait is bounded by minutes, so the hour of the reservation cannot pass in real time.
func TestAnHourOfAReservationPassesInAMinuteAtSpeedSixty(t *testing.T) {
	if testing.Short() {
		t.Skip("the hour takes a minute")
	}
	url := startDemo(t, []string{"--speed", "60", "--busy=false"})
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
	out, err := exec.CommandContext(t.Context(), filepath.Join(commands, "almanac"), "--url", url,
		"reservation", "create", "hour", "--start", "now+30m", "--duration", "1h", "-f", "value", "-c", "ID").CombinedOutput()
	if err != nil {
		t.Fatalf("book: %v\n%s", err, out)
	}
	after := now()
	var r v1.Reservation
	for _, status := range []string{"active", "ended"} {
		eventually(t, "the reservation is not "+status, func() bool {
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

func TestThePageOfAFastDemoShowsItsTimeAndSaysSo(t *testing.T) {
	b := labtest.StartBrowser(t)
	url := startDemo(t, []string{"--speed", "60"})
	b.Visit(url + "/dashboard/#/calendar")
	b.Await(".picture")
	if text := b.Text("#simulated"); text != "Simulated cloud, 60 times as fast" {
		t.Errorf("the header says %q", text)
	}
	const apart = `fetch('../v1').then(answer => almanac.now() - Date.parse(answer.headers.get('Date')) / 1000)`
	first := labtest.Evaluate[float64](b, "Date.now() / 1000")
	eventually(t, "the page is not in step with the service after five of its minutes", func() bool {
		off := labtest.Evaluate[float64](b, apart)
		return labtest.Evaluate[float64](b, "Date.now() / 1000")-first > 5 && off > -60 && off < 60
	})
	if troubles := b.Troubles(); len(troubles) > 0 {
		t.Errorf("the page has troubles: %v", troubles)
	}
}
