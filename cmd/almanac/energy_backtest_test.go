// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/backtest"
)

// measurements are a quarter of an hour apart; some of them are broken.
const measurements = `time,in_use
1800000000,2
1800000900,6
2027-01-15T08:30:00Z,6
1800002700,many
1800002700,-1
1800002700,1
1800002700,3
1800003600,1
1800004500
1800004500,1
`

func backtested(t *testing.T, stdin string, args ...string) (backtest.Answer, result) {
	t.Helper()
	got := almanacWith(t, newAPI(t), stdin, append([]string{"energy", "backtest", "-f", "api"}, args...)...)
	got.wantDone(t)
	var answer backtest.Answer
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil {
		t.Fatal(err)
	}
	return answer, got
}

func TestBacktestOfMeasurements(t *testing.T) {
	got, said := backtested(t, measurements, "--trace", "-", "--step", "15m", "--ahead", "15m", "--weight", "4", "--hosts", "8")
	want := backtest.Answer{
		Winner: "last_value", Weight: 4, From: "2027-01-15T08:00:00Z", Until: "2027-01-15T09:15:00Z", Samples: 6, Hosts: 8,
		AlwaysOn: (2 + 2 + 7 + 7) / 4.0, Rows: 10,
		NotUsed: map[string]int{
			"has something else where a number should be": 1, "has a number out of range": 1, "is not later than the line before": 1,
			"has too few or too many columns": 1,
		},
		NotUsedRows: []backtest.NotUsed{
			{Line: 5, Reason: "has something else where a number should be"}, {Line: 6, Reason: "has a number out of range"}, {Line: 8, Reason: "is not later than the line before"},
			{Line: 10, Reason: "has too few or too many columns"},
		},
		Forecasters: got.Forecasters,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	// The forecast keeps 2 6 6 1 hosts on while 6 6 1 1 are in use.
	best := backtest.Trial{Forecaster: "last_value", MeanError: 0.67, MissedHostHours: 1, SurplusHostHours: 1.25, WorstMiss: 4, WorstAt: "2027-01-15T08:15:00Z", Score: 5.25}
	if diff := cmp.Diff(best, got.Forecasters[0]); diff != "" || len(got.Forecasters) != len(energy.Forecasters) {
		t.Errorf("%d forecasters; want -, got +\n%s", len(got.Forecasters), diff)
	}
	for _, text := range []string{"A missed host-hour costs 4 idle ones.", "4 of 10 rows are not used: has a number out of range (1), has something else where a number should be (1)"} {
		if !strings.Contains(said.stderr, text) {
			t.Errorf("stderr lacks %q:\n%s", text, said.stderr)
		}
	}
}

// The sizes of jobs 8, 9 and 12 are 1, 2 and 5.
const reservationTable = "# JobID\tStart\tStop\n8\t1800000000\t1800007200\n9\t1800003600\t1800007200\n10\t1800003600\t-1\n11\t1800003600\t1800003600\n12\t1800005400\t1800009000\nx\ty\tz\n"

func TestBacktestOfReservations(t *testing.T) {
	got, said := backtested(t, reservationTable, "--trace", "-", "--step", "30m", "--ahead", "30m")
	// The hosts in use are 1 1 3 8 5 0. No reservation begins in the last step.
	if got.Hosts != 8 || got.Samples != 6 || got.AlwaysOn != (7+5+0+3)/2.0 || !got.SyntheticSizes {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]backtest.NotUsed{
		{Line: 4, Reason: "was canceled before its start"}, {Line: 5, Reason: "ends before it starts, or as it starts"}, {Line: 7, Reason: "has something else where a number should be"},
	}, got.NotUsedRows); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	if !strings.Contains(said.stderr, "synthetic size 1 + JobID mod 8") {
		t.Errorf("stderr does not report that the sizes are synthetic:\n%s", said.stderr)
	}
}

func TestBacktestOfWhatIsRecorded(t *testing.T) {
	a := newAPI(t)
	var recorded v1.EnergyDemands
	for i, inUse := range []int{1, 4, 4, 2} {
		recorded.Demand = append(recorded.Demand, v1.EnergyDemand{At: morning.Add(-period(3600 - 900*i).time()), InUse: inUse, Reserved: 4})
	}
	a.on("GET /v1/energy/demand", http.StatusOK, recorded)
	got := almanac(t, a, "energy", "backtest", "--service", "--days", "7", "--step", "15m", "-f", "value", "-c", "Missed Host Hours")
	got.wantDone(t)
	if want := strings.Repeat("0\n", len(energy.Forecasters)); got.stdout != want { // 4 hosts are reserved all the time
		t.Errorf("got %q, want %q", got.stdout, want)
	}
	if line := a.lines()[0]; !strings.Contains(line, "2026-11-24T09") {
		t.Errorf("the request is %q, want the last week", line)
	}
	empty := newAPI(t)
	empty.on("GET /v1/energy/demand", http.StatusOK, v1.EnergyDemands{Demand: []v1.EnergyDemand{}})
	almanac(t, empty, "energy", "backtest", "--service").wantFailure(t, exitNotFound, "nothing is recorded yet")
}

func TestBacktestWritesAPictureAndTables(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "folder")
	backtested(t, measurements, "--trace", "-", "--step", "15m", "--out", folder)
	for name, text := range map[string]string{
		"results.csv":  "forecaster,mean_error_hosts,missed_host_hours,surplus_host_hours,worst_miss_hosts,worst_at,score_host_hours\nlast_value,0.67,1,1.25,4,2027-01-15T08:15:00Z,11.25\n",
		"unused.csv":   "line,reason\n5,has something else where a number should be\n6,has a number out of range\n8,is not later than the line before\n10,has too few",
		"forecast.svg": "The busiest week", "forecast.png": "PNG",
	} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !strings.Contains(string(content), text) {
			t.Errorf("%s lacks %q: %v\n%.300s", name, text, err, content)
		}
	}
}

func TestABadBacktestIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		stdin   string
		args    []string
		mention string
	}{
		"no source":        {"", nil, "either --trace or --service"},
		"two sources":      {"", []string{"--trace", "-", "--service"}, "either --trace or --service"},
		"no such file":     {"", []string{"--trace", "nowhere.csv"}, "the file cannot be read"},
		"no step":          {measurements, []string{"--trace", "-", "--step", "0"}, "--step"},
		"no look ahead":    {measurements, []string{"--trace", "-", "--ahead", "0"}, "--ahead"},
		"negative weight":  {measurements, []string{"--trace", "-", "--weight", "-1"}, "--weight"},
		"no number":        {measurements, []string{"--trace", "-", "--weight", "NaN"}, "--weight"},
		"negative hosts":   {measurements, []string{"--trace", "-", "--hosts", "-1"}, "--hosts"},
		"too short":        {measurements, []string{"--trace", "-", "--ahead", "3h"}, "series"},
		"a step too short": {"time,in_use\n0,1\n9000000,1\n", []string{"--trace", "-", "--step", "1"}, "--step"},
		"no usable row":    {"time,in_use\n1800000000,x\n", []string{"--trace", "-"}, "none of the 1 rows of the file can be used: has something else where a number should be (1)"},
		"another table":    {"name,size\nx,1\n", []string{"--trace", "-"}, "--trace: there is neither a column submit nor a column start"},
		"unknown column":   {measurements, []string{"--trace", "-", "-c", "Best"}, "Best"},
	} {
		t.Run(name, func(t *testing.T) {
			almanacWith(t, newAPI(t), tc.stdin, append([]string{"energy", "backtest"}, tc.args...)...).wantFailure(t, exitUsage, tc.mention)
		})
	}
}
