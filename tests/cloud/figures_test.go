// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/tests/built"
)

// logLine is a line of almanacd's log and its time.
type logLine struct {
	at   time.Time
	text string
}

// logged returns the lines of the log with the message so far, except one that is still being written.
func logged(s *built.Service, message string) (list []logLine) {
	for line := range strings.Lines(s.Log.String()) {
		const stamp = "2006-01-02 15:04:05.000"
		if !strings.Contains(line, message) || !strings.HasSuffix(line, "\n") {
			continue
		}
		if at, err := time.ParseInLocation(stamp, line[:min(len(stamp), len(line))], time.Local); err == nil {
			list = append(list, logLine{at, line})
		}
	}
	return list
}

// reading holds the figures of one reading of the cloud, from the log.
type reading struct {
	instances, calls int
	took             time.Duration
}

var readsCloud = regexp.MustCompile(`instances=(\d+) calls=(\d+) took=(\S+)`)

func readingsOf(s *built.Service) (list []reading) {
	for _, line := range logged(s, "read the cloud") {
		if m := readsCloud.FindStringSubmatch(line.text); m != nil {
			var r reading
			r.instances, _ = strconv.Atoi(m[1])
			r.calls, _ = strconv.Atoi(m[2])
			r.took, _ = time.ParseDuration(m[3])
			list = append(list, r)
		}
	}
	return list
}

// metric returns a value of almanacd's metrics, named as "name" or `name{label="value"}`.
func (b *beside) metric(name string) float64 {
	b.t.Helper()
	for line := range strings.Lines(built.Get(b.t, b.URL+"/metrics", "")) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				b.t.Fatalf("metric %s: %v", name, err)
			}
			return value
		}
	}
	b.t.Fatalf("there is no metric %s", name)
	return 0
}

// load returns how busy the machine is. Figures mean nothing without it.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return " (load " + strings.Fields(string(text))[0] + ")"
}

// tell logs how long something took each time.
func (b *beside) tell(what string, took []time.Duration) {
	b.t.Helper()
	took = slices.Sorted(slices.Values(took))
	at := func(percent int) string {
		return fmt.Sprintf("%.2f s", took[(len(took)-1)*percent/100].Seconds())
	}
	b.t.Logf("%d %s: least %s, p50 %s, p95 %s, most %s%s", len(took), what, at(0), at(50), at(95), at(100), load())
}

func (b *beside) tellReadings(what string, list []reading) {
	b.t.Helper()
	var calls []int
	var took []time.Duration
	for _, r := range list {
		calls, took = append(calls, r.calls), append(took, r.took)
	}
	slices.Sort(calls)
	b.tell(fmt.Sprintf("readings %s, of at most %d calls (p50 %d)", what, calls[len(calls)-1], calls[len(calls)/2]), took)
}

// tellCosts logs the memory and the calls of almanacd so far.
func (b *beside) tellCosts(when string) {
	b.t.Helper()
	b.t.Logf("%s: %.0f MB resident, %.0f calls to Nova, %.0f to Placement, %.0f s of CPU%s", when,
		b.metric("process_resident_memory_bytes")/1e6, b.metric(`almanac_cloud_calls_total{service="nova"}`),
		b.metric(`almanac_cloud_calls_total{service="placement"}`), b.metric("process_cpu_seconds_total"), load())
}
