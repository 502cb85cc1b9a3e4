// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

func run(t *testing.T, o Options) *sim.Report {
	t.Helper()
	r, err := sim.Perform(context.Background(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// files returns the files of a report.
func files(t *testing.T, r *sim.Report) map[string][]byte {
	t.Helper()
	folder := t.TempDir()
	if err := r.Write(folder); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, e := range entries {
		if all[e.Name()], err = os.ReadFile(filepath.Join(folder, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func results(t *testing.T, r *sim.Report) []byte {
	t.Helper()
	csv, err := r.Results.CSV()
	if err != nil {
		t.Fatal(err)
	}
	return csv
}

func TestTheSameSeedGivesTheSameBytesAndAnotherDoesNot(t *testing.T) {
	if testing.Short() {
		t.Skip("the test takes some seconds")
	}
	o := small()
	o.Hosts, o.Days, o.Runs, o.Costs, o.Shares = 6, 3, 2, []string{"partial_hour", "priority"}, []float64{0.2}
	first, again := files(t, run(t, o)), files(t, run(t, o))
	for name, content := range first {
		if !bytes.Equal(content, again[name]) {
			t.Errorf("%s is not the same twice", name)
		}
	}
	if len(first) != 2+2*4 || len(again) != len(first) {
		t.Errorf("%d files, want a report, results and four figures of two files each", len(first))
	}
	o.Seed++
	if other := results(t, run(t, o)); bytes.Equal(other, first["results.csv"]) {
		t.Error("another seed makes the same results")
	}
}

// No expectation is contradicted at a small size. The first five, except the third, which rests
// on few requests, already hold clearly.
func TestWhatWasExpectedOfTheCostsComesOut(t *testing.T) {
	if testing.Short() {
		t.Skip("the test takes some seconds")
	}
	o := small()
	o.Hosts, o.Days, o.Shares = 16, 6, nil
	from, err := o.source(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := o.compare(context.Background(), from, nil)
	if err != nil {
		t.Fatal(err)
	}
	list := o.orderings(c)
	if len(list) != 11 {
		t.Errorf("%d orderings", len(list))
	}
	for n, one := range list {
		if one.Verdict == sim.NotHeld || n < 5 && n != 2 && one.Verdict != sim.Held {
			t.Errorf("%s: %s (%s)", one.Claim, one.Verdict, one.Seen)
		}
	}
	for _, one := range c.main {
		for _, m := range measures() {
			values := one.values(o, m)
			if (values == nil) != (one.without && m.name != utilization && m.name != useful && m.name != refusedShare && !strings.HasPrefix(m.name, "utilization_")) {
				t.Errorf("%s of %s: %v", m.name, one.name, values)
			}
			for _, v := range values {
				if math.IsNaN(v) || v < 0 || strings.HasPrefix(m.unit, "share") && v > 1 {
					t.Errorf("%s of %s is %v", m.name, one.name, v)
				}
			}
		}
	}
}

func TestTheReportTellsWhatWasMadeUp(t *testing.T) {
	o := small()
	o.Days, o.Runs, o.Costs, o.Shares = 3, 1, []string{"price"}, nil
	text := run(t, o).Markdown()
	for _, want := range []string{
		"The machines are made up.", "8 vcpus, 16000 MB memory, 160 GB disk", "E001-1", "Not measured", "0 were not preemptible", "Made up too:", "AP2 AP3 AP4 on host-A",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not contain %q", want)
		}
	}
	if strings.Contains(text, "shares.svg") {
		t.Error("there is a figure over shares, and there are none")
	}
}

func TestWhatCannotBeRunIsRefusedWithItsOption(t *testing.T) {
	for _, tc := range []struct {
		field string
		spoil func(*Options)
	}{
		{"runs", func(o *Options) { o.Runs = 0 }},
		{"hosts", func(o *Options) { o.Hosts = 1 }},
		{"host_vcpus", func(o *Options) { o.Host = resource.Vector{MemoryMB: 4} }},
		{"host_memory_mb", func(o *Options) { o.Host = resource.Vector{VCPUs: 4} }},
		{"host_memory_mb", func(o *Options) { o.Host = resource.Vector{VCPUs: 4, MemoryMB: 1 << 40} }},
		{"host_disk_gb", func(o *Options) { o.Host = resource.Vector{VCPUs: 4, MemoryMB: 4, DiskGB: -1} }},
		{"days", func(o *Options) { o.Days = 0 }},
		{"warm_up", func(o *Options) { o.WarmUp = o.Days }},
		{"warm_up", func(o *Options) { o.WarmUp = -1 }},
		{"load", func(o *Options) { o.Load = math.NaN() }},
		{"load", func(o *Options) { o.Load = 1e-300 }},
		{"share", func(o *Options) { o.Share = 1.01 }},
		{"shares", func(o *Options) { o.Shares = []float64{0.5, -1} }},
		{"costs", func(o *Options) { o.Costs = nil }},
		{"costs", func(o *Options) { o.Costs = []string{"chance"} }},
		{"costs", func(o *Options) { o.Costs = []string{"age", "age"} }},
		{"period", func(o *Options) { o.Period = 0 }},
		{"trace", func(o *Options) { o.Trace = "not/there" }},
		{"latency", func(o *Options) { o.Latency = true }},
		{"latency_hosts", func(o *Options) { o.Latency, o.Clock, o.LatencyHosts = true, time.Now, nil }},
		{"latency_hosts", func(o *Options) { o.Latency, o.Clock, o.LatencyHosts = true, time.Now, []int{3} }},
	} {
		o := Defaults()
		tc.spoil(&o)
		if _, err := sim.Perform(context.Background(), o, nil); !fault.Is(err, fault.Invalid) || fault.Of(err).Field != tc.field {
			t.Errorf("%s: %v", tc.field, err)
		}
	}
	if err := Defaults().Check(); err != nil {
		t.Error(err)
	}
	o := Defaults()
	o.Costs = []string{"chance"}
	if err := o.Check(); !strings.Contains(err.Error(), "the costs are partial_hour, running_time, age, price, priority") {
		t.Errorf("the costs that there are, are not named: %v", err)
	}
}

// The clock advances by a microsecond with each reading.
func TestLatencyIsWhatTheClockSaysAndChangesNothingElse(t *testing.T) {
	o := small()
	o.Days, o.Runs, o.Costs, o.Shares = 2, 1, []string{"partial_hour"}, nil
	without := results(t, run(t, o))
	now := time.Unix(0, 0)
	o.Latency, o.LatencyHosts = true, []int{4, 100}
	o.Clock = func() time.Time { now = now.Add(time.Microsecond); return now }
	r := run(t, o)
	if !bytes.Equal(results(t, r), without) {
		t.Error("the results are others where latency is measured")
	}
	if n := strings.Count(r.Markdown(), "| 1.0 | 0.0 | 1.0 |"); n != 2*7 || !strings.Contains(r.Markdown(), "latency.svg") {
		t.Errorf("%d bars of one microsecond, want seven for each number of hosts", n)
	}
}

// azureTrace returns a folder in the form of the Azure traces, of this many days.
func azureTrace(t *testing.T, days int) string {
	t.Helper()
	var flavors, lifetimes strings.Builder
	for line := range days * 288 {
		fmt.Fprintf(&flavors, "%d a,b,|,a,|,c,|\n", 1_800_000+300*line)
		fmt.Fprintf(&lifetimes, "%d U0,U2,|,C1,|,U2,|\n", 1_800_000+300*line)
	}
	folder := t.TempDir()
	for name, text := range map[string]string{
		"flav_map.txt": "1,0.75 a\n2,3.5 b\n64,512 c\n", "v1.interval_map.txt": "0 0\n300 1\n600 1\n900 2\n1200 2\n1500 2\n",
		"v1.dev.txt": flavors.String(), "v1.dev.c2100000.txt": lifetimes.String(),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// The stream does not end, and its days continue from one pass to the next.
func TestTracesAreRepeatedByWholeDays(t *testing.T) {
	o := small()
	o.Hosts, o.Days, o.Load, o.Trace = 2, 5, 0.02, azureTrace(t, 2)
	from, err := o.source(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := from.(*traces)
	if s.pass%day != 0 || s.pass != 2*day || s.larger != 2*288 {
		t.Errorf("a pass of %d seconds, %d machines too large", s.pass, s.larger)
	}
	stream, err := from.open(t.Context(), 0, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	before, offered := int64(0), 0.0
	for before < 5*day {
		j, err := stream.Next()
		if err != nil {
			t.Fatal(err)
		}
		if j.Submit < before || j.Shape.VCPUs > 2 {
			t.Fatalf("after %d comes %+v", before, j)
		}
		before = j.Submit
		offered += float64(j.Shape.VCPUs * j.Runtime)
	}
	if got, want := offered/(5*day), o.Load*o.vcpus(); math.Abs(got-want) > 0.2*want {
		t.Errorf("the jobs request %.3f VCPUs, want about %.3f", got, want)
	}
	o.Load = 50
	if _, err := sim.Perform(context.Background(), o, nil); !fault.Is(err, fault.Invalid) || fault.Of(err).Field != "load" {
		t.Errorf("a load that the trace does not have: %v", err)
	}
}

func TestTheAzureTracesRun(t *testing.T) {
	data := os.Getenv("ALMANAC_DATA")
	if data == "" {
		t.Skip("ALMANAC_DATA does not name the folder of the traces")
	}
	o := small()
	o.Hosts, o.Days, o.Runs, o.Costs, o.Shares, o.Trace = 8, 3, 1, []string{"partial_hour"}, nil, filepath.Join(data, "azure")
	text := run(t, o).Markdown()
	for _, want := range []string{"2638 lines with 669435 machines", "Kaplan and Meier", "repeated every 9 days"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not contain %q", want)
		}
	}
}

func TestSurvivalCountsThoseWhoEndedByThemselvesAsLongAsTheyRan(t *testing.T) {
	// Of ten, two are evicted and four end in the first hour. Of the remaining four, two are
	// evicted in the third hour.
	got := survival([]int64{4, 0, 2, 0}, []int64{2, 0, 2, 0})
	if want := []float64{1, 0.8, 0.8, 0.4}; !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestAnInterruptedRunEnds(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := sim.Perform(ctx, small(), nil); err == nil {
		t.Error("the run did not end")
	}
}
