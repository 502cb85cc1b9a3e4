// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

// written writes a CSV file of virtual machines and returns its path.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vms.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// vmTrace writes a CSV file with each machines an hour.
func vmTrace(t *testing.T, hours, each int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("id,submit,runtime,vcpus,memory_mb,preemptible\n")
	for n := range hours * each {
		fmt.Fprintf(&b, "%d,%d,%d,%d,2000,%t\n", n, 1_000_000+n*3600/each, 7200+n%7*3600, 1+n%4, n%3 == 0)
	}
	b.WriteString("broken\n0,2000000,100,64,2000,false\n")
	return written(t, b.String())
}

func says(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not contain %q", want)
		}
	}
}

func TestACSVFileIsTakenAsItIs(t *testing.T) {
	o := small()
	o.Host, o.Hosts, o.Days, o.Runs, o.Trace = paperHost, 4, 3, 1, vmTrace(t, 24*6, 5)
	text := run(t, o).Markdown()
	says(t, text, "those of the file, as it is", "however empty: 1.", "Skipped lines: 1; each", "Intervals are over these draws alone")
	if strings.Contains(text, "shares.svg") {
		t.Error("the share of a file cannot be changed, and there is a figure over it")
	}
	if strings.Contains(text, "shorter than the days") {
		t.Error("the report calls a file of six days shorter than three")
	}
}

// daily writes a file of five machines a day, at midnight, for this many days.
func daily(t *testing.T, days int) string {
	t.Helper()
	text := "submit,runtime,vcpus,memory_mb,size\n"
	for d := range days {
		text += fmt.Sprintf("%d,7200,1,1000,5\n", d*day)
	}
	return written(t, text)
}

func TestMachinesOfAFileThatAreNotMeasuredAreCounted(t *testing.T) {
	o := small()
	o.Host, o.Hosts, o.Days, o.WarmUp, o.Runs, o.Costs = paperHost, 4, 6, 2, 1, []string{"price"}
	o.Trace = daily(t, 9)
	says(t, run(t, o).Markdown(), "Of the others 20 come in the days that are measured; 10 before, in the warm-up (days: 2)", "and 15 after all that is simulated (days: 6)")
	o.Trace = daily(t, 4)
	r := run(t, o)
	files(t, r)
	says(t, r.Markdown(), "no evictions to draw", "10 come in the days that are measured", "The file is shorter than the days that are simulated**: it has machines for 4 of 6 days")
}

func TestAFileOfWhichNothingWouldBeMeasuredIsRefused(t *testing.T) {
	gap := "submit,runtime,vcpus,memory_mb\n0,7200,1,1000\n2000000,7200,1,1000\n"
	for _, tc := range []struct {
		name, trace, field string
		says               []string
	}{
		{"no vcpus", written(t, "id,submit,runtime\n1,2,3\n"), "trace", []string{"line 2", "needs vcpus"}},
		{"no machines", written(t, "id,submit,runtime,vcpus,memory_mb\n"), "trace", []string{"has no machines"}},
		{"no line that is right", written(t, "submit,runtime,vcpus,memory_mb\nx,1,1,1\n5,-1,1,1\n5,y,1,1\n7,7,1\n"), "trace", []string{
			"has no machines; skipped lines: 1; each has a time that is neither", "has too few or too many columns; the first are 5",
		}},
		{"no host has room", written(t, "submit,runtime,vcpus,memory_mb\n0,7200,64,1000\n"), "trace", []string{"no host has room for any of the 1 machines"}},
		{"all warm up", daily(t, 1), "warm_up", []string{"all 5 machines"}},
		{"all before and after", written(t, gap), "days", []string{"1 come later", "it has 24 days"}},
	} {
		o := small()
		o.Host, o.Trace = paperHost, tc.trace
		_, err := sim.Perform(context.Background(), o, nil)
		if !fault.Is(err, fault.Invalid) || fault.Of(err).Field != tc.field {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		says(t, err.Error(), tc.says...)
	}
}

// 32 VCPUs hold no batch of 33 machines. Without the bound, each of a billion would be refused
// separately.
func TestABatchThatAllHostsCouldNotHoldIsLeftOut(t *testing.T) {
	o := small()
	o.Host, o.Hosts, o.Days, o.Runs, o.Costs = resource.Vector{VCPUs: 8, MemoryMB: 16000}, 4, 3, 1, []string{"price"}
	o.Trace = written(t, "submit,runtime,vcpus,memory_mb,size\n0,7200,1,1000,1\n100000,7200,1,1,1000000000\n100000,7200,1,1,33\n100000,7200,1,1,32\n")
	says(t, run(t, o).Markdown(), "Of the others 32 come in the days that are measured", "Skipped lines: 2; each is larger than the machine; the first are 3 4.")
}

func TestReadingATraceEndsWithItsContext(t *testing.T) {
	for name, trace := range map[string]string{"file": vmTrace(t, 24*6, 5), "folder": azureTrace(t, 2)} {
		o := small()
		o.Load, o.Trace = 0.01, trace
		from, err := o.source(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stream, err := from.open(ctx, 0, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		stop()
		if _, err := stream.Next(); err == nil {
			t.Errorf("%s: machines are read on", name)
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
		if _, err := o.source(ctx); err == nil {
			t.Errorf("%s: the trace is read to its end", name)
		}
	}
}
