// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"os"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/energy"
)

// waited returns the result of a setting on 4 hosts where one job comes each day and waits this
// many seconds; a negative number is a refusal.
func waited(name string, waits ...int64) result {
	s := named(name, nil)
	r := result{setting: &s, tally: &tally{}, hosts: 4, draw: energy.Draw{Idle: 100, Full: 200}}
	for day, wait := range waits {
		at := int64(day) * 24 * 3600
		r.tally.ask(at, false, wait >= 0, wait, 3600)
		if wait >= 0 {
			r.tally.use(at+wait, at+wait+3600, 1)
		}
	}
	return r
}

// judged returns the sentence about a measure.
func judged(t *testing.T, key string, results ...result) string {
	t.Helper()
	for i := range measures {
		if m := &measures[i]; m.key == key {
			v, ok := m.judge(results)
			if !ok {
				return ""
			}
			return v.sentence(m, results)
		}
	}
	t.Fatalf("there is no measure %s", key)
	return ""
}

func holds(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("got %q, want %q in it", text, want)
	}
}

// The busy first part decides the mean of all jobs; the other parts agree on the opposite.
func TestASettingIsClearlyBestOnlyWhereThePartsAgreeThatItIsBetter(t *testing.T) {
	burst := func(name string, first, others int64) result {
		r := waited(name, first, others, others, others, others, others, others, others, others, others+1)
		for range 1000 {
			r.tally.ask(0, false, true, first, 3600)
		}
		return r
	}
	a, b := burst("a", 3600, 36000), burst("b", 7200, 7200)
	holds(t, judged(t, "mean_wait", a, b), "no clear difference; a has")
	holds(t, judged(t, "mean_wait", waited("a", 60, 61, 62, 60), waited("b", 3600, 3601, 3599, 3600)), "**: a, with")
}

func TestATraceOfOnePartIsTooShortToTell(t *testing.T) {
	holds(t, judged(t, "mean_wait", waited("a", 60), waited("b", 3600)), "too short to tell; a has")
	holds(t, judged(t, "mean_wait", waited("a", 60), waited("b", 60)), "no clear difference; a has")
	holds(t, judged(t, "mean_wait", waited("a", 60, 70, 60), waited("b", 3600, 3600, 3600)), "**: a, with")
	o := of(t, 2, byHand, named("a", nil), named("b", nil))
	holds(t, run(t, o).Markdown(), "over 1 equal part of")
}

func TestASettingThatRefusesJobsIsNotBestForWhatTheyWouldHaveTaken(t *testing.T) {
	all, half, none := waited("all", 0, 0, 9000, 0), waited("half", 0, 0, -1, -1), waited("none", -1, -1, -1, -1)
	for _, key := range []string{"makespan", "energy", "energy_per_work"} {
		holds(t, judged(t, key, all, half, none), "nothing to compare with all")
		holds(t, judged(t, key, all, half, none), "not judged, with fewer jobs accepted: half; none")
		if text := judged(t, key, none); text != "" {
			t.Errorf("the sentence on settings that refuse all jobs is %q", text)
		}
	}
	holds(t, judged(t, "makespan", none, all, waited("late", 0, 0, 0, 90000)), "**: all, with 3.04 d; not judged, with fewer jobs accepted: none")
	holds(t, judged(t, "mean_wait", none, all, half), "; not judged, with fewer jobs accepted: none")
}

func TestTheBestOfARowIsBoldWithAllThatTieWithIt(t *testing.T) {
	o := of(t, 2, byHand, named("a", nil), named("b", nil), named("off", switched))
	holds(t, run(t, o).Markdown(), "| late starts | 0 | 0 | 0 |")
	hasty := named("hasty", func(s *Setting) { s.Limits.Duration = 70 }) // refuses only A
	o.Settings = []Setting{named("a", nil), named("b", nil), hasty}
	holds(t, run(t, o).Markdown(), "| utilization | **0.7581** | **0.7581** |")
}

func TestSmallDelaysThatDifferAreWrittenSo(t *testing.T) {
	for i := range measures {
		if m := &measures[i]; m.key == "delay_req" && (m.number(0.00012) == m.number(0.00013) || m.number(12345.6) != "12345.6") {
			t.Errorf("delays are %s and %s", m.number(0.00012), m.number(12345.6))
		}
	}
}

func TestATraceThatChangesWhileItIsReplayedIsRefused(t *testing.T) {
	o := of(t, 2, byHand, named("s", nil))
	hosts, in, err := o.prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.Traces[0], []byte(byHand[:strings.Index(byHand, "D,")]), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = runTrial(t.Context(), &o, &o.Settings[0], in, hosts, func() {})
	refused(t, err, "trace")
	holds(t, err.Error(), "5 jobs in the first pass, and now has 3")
}

func TestAMachineThatIsTooLargeToSimulateIsSaidToBeSo(t *testing.T) {
	o := Defaults()
	o.Traces = []string{file(t, "a.swf", "; MaxProcs: 1000000\n1 0 0 10 60 -1 -1 60 20 -1 1 1 1 -1 -1 -1 -1 -1\n")}
	_, err := Run(t.Context(), o, nil)
	refused(t, err, "hosts")
	holds(t, err.Error(), "1000000 hosts, and at most 65536")
}

func TestFormatsAreRefusedUnderTheNameOfTheirOption(t *testing.T) {
	o := of(t, 2, byHand)
	o.Formats = []string{"csv", "csv"}
	_, err := Run(t.Context(), o, nil)
	refused(t, err, "trace_format")
	_, err = Run(t.Context(), of(t, 2, "what is this?\n"), nil)
	if err == nil {
		t.Fatal("the trace is replayed")
	}
	o.Formats, o.Traces = nil, []string{file(t, "notes", "what is this?\n")}
	_, err = Run(t.Context(), o, nil)
	refused(t, err, "trace_format")
	o.Traces = []string{file(t, "empty", "")}
	_, err = Run(t.Context(), o, nil)
	refused(t, err, "trace")
}

func TestMistakesOfAFileOfSettingsAreSaidInALineThatCanBePrinted(t *testing.T) {
	for _, text := range []string{
		"[", "\x00\x01\x1b[2J: [", "a: b: c\n- d\n\x1b", "settings: [{\"po\\nlicy\": 1}]", "settings: [{name: \"a\\nb\"}]", "settings: [{name: \"a\\e[2Jb\"}]",
		"settings: [{policy: [\"a\\nb\"]}]", "settings: [{patience: \"a\\nb\"}]", "settings: [{deadline_factor: \"a\\nb\"}]", "", "# nothing\n",
	} {
		_, err := ReadSettings([]byte(text))
		if err == nil || !printable(err.Error()) {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := ReadSettings(nil)
	holds(t, err.Error(), "no settings")
}
