// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// There are two hosts. A has both until 100. B begins then, 90 s after its submission. C is
// reserved for 200 to 250. D needs both for 60 s, which are not free between B and C, so it
// begins at 250, after 220 s. E is reserved for a time that C has.
const byHand = `id,submit,start,runtime,size
A,0,,100,2
B,10,,50,1
C,20,200,50,2
D,30,,60,2
E,40,210,10,1
`

func TestAReplayByHand(t *testing.T) {
	r := run(t, of(t, 2, byHand, named("s", nil)))
	expect(t, r, "s", map[string]float64{
		"acceptance_reserved": 0.5, "acceptance_others": 1, "other_jobs": 3,
		"mean_wait": (0 + 90 + 220) / 3.0 / 3600, "p95_wait": 220.0 / 3600, "most_wait": 220.0 / 3600,
		"slowdown": (1 + 140/50.0 + 280/60.0) / 3, "makespan": 310.0 / 86400,
		"utilization": (200 + 50 + 100 + 120) / 620.0, "refused_free_hosts": 1,
		"energy": (95*(620-470) + 190.738*470) / 3.6e6, "host_hours_off": 0, "cut_short": 0,
	})
}

func TestTimeThatAJobDoesNotNeedIsFreeForWhoComesThen(t *testing.T) {
	const csv = "submit,runtime,estimate,size\n0,10,1000,1\n5,10,10,1\n20,10,10,1\n"
	r := run(t, of(t, 1, csv, named("s", nil)))
	// The second job was promised the end of the estimate; the third one follows the first.
	expect(t, r, "s", map[string]float64{"mean_wait": 995 / 3.0 / 3600, "makespan": 1010.0 / 86400})
}

func TestAJobWaitsNoLongerThanItsDeadlineOrItsPatience(t *testing.T) {
	const csv = "submit,runtime,deadline\n0,100,\n1,100,\n2,100,250\n3,10,400\n"
	r := run(t, of(t, 1, csv,
		named("patient", nil),
		named("impatient", func(s *Setting) { s.Patience = 50 }),
		named("factor", func(s *Setting) { s.DeadlineFactor = 1 }),
	))
	for setting, accepted := range map[string]float64{"patient": 3, "impatient": 3, "factor": 3} {
		expect(t, r, setting, map[string]float64{"other_accepted": accepted})
	}
	// The patient second job makes the third one miss its deadline; the impatient one does not.
	expect(t, r, "patient", map[string]float64{"most_wait": 197.0 / 3600})
	expect(t, r, "impatient", map[string]float64{"most_wait": 197.0 / 3600})
}

func TestLimitsHoldForEachUser(t *testing.T) {
	const csv = "submit,runtime,size,user\n0,100,2,ann\n1,100,2,ann\n2,100,2,bob\n3,10,4,ann\n"
	r := run(t, of(t, 8, csv, named("free", nil), named("limited", func(s *Setting) { s.Limits.Hosts = 3 })))
	expect(t, r, "free", map[string]float64{"other_accepted": 4})
	// The second job of ann waits for the end of ann's first; the third one is larger than ann's
	// limit.
	expect(t, r, "limited", map[string]float64{"other_accepted": 3, "most_wait": 99.0 / 3600, "refused_max_hosts_per_project": 1})
}

func TestHostsThatNobodyNeedsAreSwitchedOffWhereASettingSaysSo(t *testing.T) {
	o := of(t, 10, workdays(3, 6), named("on", nil), named("off", switched))
	r := run(t, o)
	if on, off := value(t, r, "on", "energy"), value(t, r, "off", "energy"); off > 0.7*on {
		t.Errorf("with hosts off the replay uses %v kWh, with all on %v", off, on)
	}
	if hours := value(t, r, "off", "host_hours_off"); hours < 100 {
		t.Errorf("hosts were off for %v host-hours", hours)
	}
	for _, setting := range []string{"on", "off"} {
		expect(t, r, setting, map[string]float64{"acceptance_others": 1})
	}
}

// Boots that take longer than the planner expects cause late starts. A job that needs all of its
// booked time is then cut short.
func TestLateStartsAreCountedAndCutJobsShort(t *testing.T) {
	var csv strings.Builder
	csv.WriteString("submit,start,runtime,size\n")
	for day := range 10 {
		fmt.Fprintf(&csv, "%d,%d,600,4\n", day*86400, day*86400+43200)
	}
	o := of(t, 4, csv.String(), named("slow", func(s *Setting) {
		switched(s)
		s.Energy.BootTime, s.Energy.BootSpread, s.Energy.Rules.Horizon = 600, 1, 60
	}))
	r := run(t, o)
	late := value(t, r, "slow", "late_starts")
	if late == 0 || value(t, r, "slow", "late_seconds") < late {
		t.Errorf("%v starts were late", late)
	}
	expect(t, r, "slow", map[string]float64{"cut_short": late, "acceptance_reserved": 1})
}

// The booking service alone and the site of package site are two ways to run a cloud whose hosts are always
// on. Their results are equal.
func TestTheDeskAndTheSiteWithoutPowerGiveTheSame(t *testing.T) {
	for _, policy := range []calendar.Policy{calendar.PolicyFirstFit, calendar.PolicyPEWorstFit} {
		o := of(t, 8, workdays(6, 40), named("s", func(s *Setting) { s.Policy = policy }))
		hosts, in, err := o.prepare(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var results []result
		for _, open := range []func(*trial, context.Context) error{(*trial).openDesk, (*trial).openSite} {
			tr := newTrial(t.Context(), &o, &o.Settings[0], in, hosts)
			if err := errors.Join(open(tr, t.Context()), tr.replay(t.Context(), func() {})); err != nil {
				t.Fatal(err)
			}
			results = append(results, tr.result())
		}
		for i := range measures {
			m := &measures[i]
			a, _ := m.of(&results[0])
			b, _ := m.of(&results[1])
			if d := a - b; d > 1e-9*(1+a) || -d > 1e-9*(1+a) {
				t.Errorf("%s: %s is %v by the bookings and %v by the site", policy, m.name, a, b)
			}
		}
		if a := results[0].tally.others; a.accepted == a.jobs || a.accepted == 0 {
			t.Errorf("%d of %d jobs were accepted: the test shows little", a.accepted, a.jobs)
		}
	}
}

func TestTheSameReplayGivesTheSameBytes(t *testing.T) {
	o := of(t, 8, workdays(2, 20), named("on", nil), named("off", func(s *Setting) { switched(s); s.Energy.BootSpread = 0.5 }), named("wide", func(s *Setting) { s.Policy = calendar.PolicyPEWorstFit }))
	var folders [2]string
	for i := range folders {
		folders[i] = t.TempDir()
		if err := run(t, o).Write(folders[i]); err != nil {
			t.Fatal(err)
		}
	}
	names, err := os.ReadDir(folders[0])
	if err != nil || len(names) < 8 {
		t.Fatalf("there are %d files (%v)", len(names), err)
	}
	for _, name := range names {
		a, errA := os.ReadFile(filepath.Join(folders[0], name.Name()))
		b, errB := os.ReadFile(filepath.Join(folders[1], name.Name()))
		if err := errors.Join(errA, errB); err != nil {
			t.Fatal(err)
		}
		if string(a) != string(b) {
			t.Errorf("%s differs", name.Name())
		}
	}
}

func TestTheReportSaysWhatWasSkippedAndWhatIsMadeUp(t *testing.T) {
	o := Defaults()
	o.Hosts, o.Settings = 6, []Setting{named("a", nil), named("b", func(s *Setting) { s.Policy = calendar.PolicyPEWorstFit })}
	o.Traces = []string{file(t, "reservations.log", "# a comment\n7\t1081771500\t-1\n841\t1084363551\t1084364024\n895\t1084363552\t1084364024\nbroken\n")}
	text := run(t, o).Markdown()
	for _, want := range []string{
		"made up", "1 + (JobID mod 8) hosts", "was canceled before its start | line 2", "is larger than the machine | line 4", "has too few or too many columns | line 5",
		"| 4 | 1 |", "no clear difference", "Take care where differences are small", "seed 1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not contain %q:\n%s", want, text)
		}
	}
}

func TestTracesAreMergedOnOneClock(t *testing.T) {
	o := of(t, 4, "submit,runtime\n0,100\n50,100\n", named("s", nil))
	o.Traces = append(o.Traces, file(t, "inject.lwf", "10 3600 60 60 4 1 1024 0 'NONE.img' 600\n"))
	r := run(t, o)
	expect(t, r, "s", map[string]float64{"reserved_jobs": 1, "reserved_accepted": 1, "other_jobs": 2})

	o.Traces[1] = file(t, "epoch.csv", "start,runtime\n2024-01-01,60\n")
	_, err := Run(t.Context(), o, nil)
	refused(t, err, "trace")
}

func TestTheMachineIsWhatTheTraceSaysWhereNobodySaysMore(t *testing.T) {
	o := Defaults()
	o.ProcsPerHost, o.Settings = 8, []Setting{named("s", nil)}
	o.Traces = []string{file(t, "a.swf", "; MaxProcs: 60\n1 0 0 10 60 -1 -1 60 20 -1 1 1 1 -1 -1 -1 -1 -1\n2 9 0 10 66 -1 -1 66 20 -1 1 1 1 -1 -1 -1 -1 -1\n")}
	text := run(t, o).Markdown()
	for _, want := range []string{"what 8 hosts have", "is larger than the machine | line 3"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not contain %q:\n%s", want, text)
		}
	}
}

const hostsFile = `hosts:
  - {name: "n[1-2]", vcpus: 8, memory_mb: 16384, power: {state: "off", boot_seconds: 100}}
  - {name: spare, vcpus: 8, memory_mb: 16384, reservable: false}
`

func TestJobsWithAShapeShareTheHostsOfAFileWhereAskedTo(t *testing.T) {
	const csv = "submit,runtime,size,vcpus,memory_mb\n0,100,4,4,1024\n0,100,1,4,1024\n"
	o := of(t, 0, csv, named("s", func(s *Setting) { s.Patience = 0 }))
	o.HostsFile = file(t, "hosts.yaml", hostsFile)
	expect(t, run(t, o), "s", map[string]float64{"other_accepted": 1}) // the job needs four hosts, which do not exist
	o.Shapes = true
	expect(t, run(t, o), "s", map[string]float64{"other_accepted": 1, "other_jobs": 2, "utilization": 1})
}

func TestWhatCannotBeMetIsRefusedBeforeAnythingRuns(t *testing.T) {
	for field, change := range map[string]func(o *Options){
		"trace":                             func(o *Options) { o.Traces = nil },
		"trace_format":                      func(o *Options) { o.Formats = []string{"swff"} },
		"procs_per_host":                    func(o *Options) { o.ProcsPerHost = 0 },
		"hosts":                             func(o *Options) { o.HostsFile = "too.yaml" },
		"hosts_file":                        func(o *Options) { o.Hosts, o.HostsFile = 0, "there/is/no.yaml" },
		"shapes":                            func(o *Options) { o.Shapes = true },
		"most_jobs":                         func(o *Options) { o.MostJobs = -1 },
		"idle_watts":                        func(o *Options) { o.Draw.Idle = -1 },
		"settings":                          func(o *Options) { o.Settings = make([]Setting, 21) },
		"settings[0].name":                  func(o *Options) { o.Settings[0].Name = "" },
		"settings[1].name":                  func(o *Options) { o.Settings[1].Name = o.Settings[0].Name },
		"settings[0].policy":                func(o *Options) { o.Settings[0].Policy = "best" },
		"settings[0].patience":              func(o *Options) { o.Settings[0].Patience = -1 },
		"settings[0].limits":                func(o *Options) { o.Settings[0].Limits.Hosts = -1 },
		"settings[0].energy.mode":           func(o *Options) { o.Settings[0].Energy.Mode = "sometimes" },
		"settings[1].energy.spare_hosts":    func(o *Options) { o.Settings[1].Energy.Rules.SpareHosts = 5 },
		"settings[1].energy.forecaster":     func(o *Options) { o.Settings[1].Energy.Forecaster = "crystal_ball" },
		"settings[1].energy.horizon":        func(o *Options) { o.Settings[1].Energy.Rules.Horizon = -1 },
		"settings[1].energy.boot_time":      func(o *Options) { o.Settings[1].Energy.BootTime = -1 },
		"settings[1].energy.idle_intervals": func(o *Options) { o.Settings[1].Energy.Rules.IdleNeeded = 0 },
	} {
		o := of(t, 4, byHand, named("on", nil), named("off", switched))
		change(&o)
		r, err := Run(t.Context(), o, func(int, int) { t.Errorf("%s: it runs", field) })
		if r != nil {
			t.Errorf("%s: there is a report", field)
		}
		refused(t, err, field)
	}
}

func TestTracesOfWhichNothingCanBeUsedAreRefused(t *testing.T) {
	for _, csv := range []string{"submit,runtime\n", "submit,runtime\n1,0\n2,-1\n", "submit,runtme\n1,2\n", "submit,runtime\n0,1\n1700000000,60\n1700000001,60\n"} {
		_, err := Run(t.Context(), of(t, 4, csv), nil)
		if err == nil {
			t.Errorf("%q is replayed", csv)
			continue
		}
		refused(t, err, "trace")
	}
	o := of(t, 0, byHand)
	_, err := Run(t.Context(), o, nil)
	refused(t, err, "hosts") // a CSV does not state them
}

func TestProgressIsToldForEachHundredthOfFewJobs(t *testing.T) {
	var told atomic.Int64
	o := of(t, 20, workdays(10, 20), named("a", nil))
	if _, err := Run(t.Context(), o, func(int, int) { told.Add(1) }); err != nil || told.Load() < 100 {
		t.Errorf("the progress of 200 jobs is told %d times (%v), want 100 at least", told.Load(), err)
	}
}

func TestProgressEndsWithAllJobs(t *testing.T) {
	var mu sync.Mutex
	last, total := 0, 0
	_, err := Run(t.Context(), of(t, 8, workdays(4, 20), named("a", nil), named("b", nil)), func(done, of int) {
		mu.Lock()
		defer mu.Unlock()
		last, total = done, of
	})
	if err != nil || last != 160 || total != 160 {
		t.Errorf("progress ends at %d of %d (%v), want 160", last, total, err)
	}
}

func TestAReplayEndsWhereItsContextDoes(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Run(ctx, of(t, 4, byHand), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

func TestAnOperatorWhoSaysNothingComparesThreePoliciesOnAndOff(t *testing.T) {
	r := run(t, of(t, 2, byHand))
	for _, s := range DefaultSettings() {
		expect(t, r, s.Name, map[string]float64{"reserved_jobs": 2, "other_jobs": 3})
	}
}
