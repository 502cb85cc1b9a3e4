// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

// file writes a file into a new folder and returns its path.
func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// of returns the options for a trace on this many hosts, under the settings.
func of(t testing.TB, hosts int, csv string, settings ...Setting) Options {
	t.Helper()
	o := Defaults()
	o.Traces, o.Hosts, o.Settings = []string{file(t, "trace.csv", csv)}, hosts, settings
	return o
}

// named returns a changed default setting.
func named(name string, change func(s *Setting)) Setting {
	s := DefaultSetting()
	s.Name = name
	if change != nil {
		change(&s)
	}
	return s
}

func switched(s *Setting) { s.Energy.Mode, s.Energy.Rules = energy.ModeAuto, energy.Paper() }

func run(t *testing.T, o Options) *sim.Report {
	t.Helper()
	r, err := Run(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// value returns a value of the results.
func value(t *testing.T, r *sim.Report, setting, measure string) float64 {
	t.Helper()
	for _, row := range r.Results.Rows {
		if row[0] == setting && row[1] == measure {
			v, err := strconv.ParseFloat(row[3], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("there is no %s of setting %s in %v", measure, setting, r.Results.Rows)
	return 0
}

// expect checks values of the results, to a part in 100,000.
func expect(t *testing.T, r *sim.Report, setting string, want map[string]float64) {
	t.Helper()
	for measure, w := range want {
		if got := value(t, r, setting, measure); got < w-1e-5*(1+w) || got > w+1e-5*(1+w) {
			t.Errorf("%s of %s is %v, want %v", measure, setting, got, w)
		}
	}
}

// refused checks that an Invalid fault names a field.
func refused(t *testing.T, err error, field string) {
	t.Helper()
	if !fault.Is(err, fault.Invalid) || fault.Of(err).Field != field {
		t.Errorf("got %v; want an Invalid fault on %s", err, field)
	}
}

// workdays returns the CSV of jobs of many sizes and lengths, submitted by day. Every seventh is
// reserved for a start of its own.
func workdays(days, aDay int) string {
	chance := sim.Chance(7, "jobs of a test")
	var b strings.Builder
	b.WriteString("submit,start,runtime,estimate,size,user\n")
	for day := range days {
		at := int64(day) * 24 * 3600
		for n := range aDay {
			at += chance.Int64N(8 * 3600 / int64(aDay))
			runtime := 60 + chance.Int64N(4*3600)
			start := ""
			if n%7 == 3 {
				start = strconv.FormatInt(at+3600+chance.Int64N(24*3600), 10)
			}
			fmt.Fprintf(&b, "%d,%s,%d,%d,%d,u%d\n", at, start, runtime, runtime*(1+chance.Int64N(3)), 1+chance.IntN(6), n%3)
		}
	}
	return b.String()
}
