// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// controlled returns an energy controller as the API returns it.
func controlled() v1.Energy {
	return v1.Energy{
		Mode: "auto", EffectiveMode: "auto", ConfiguredMode: "off", Aggregates: map[string]string{"gpu": "observe"}, Hosts: map[string]string{"n2": "off", "n1": "auto"},
		Stopped: &v1.EnergyStop{By: "ann", At: morning, Reason: "repair"}, Stale: "nobody measures",
		Alarms: []v1.EnergyAlarm{{Kind: "breaker", Text: "arm it", Since: morning}, {Kind: "stuck", Host: "n1", Text: "look", Since: morning}},
		Agents: []v1.EnergyAgent{{Name: "rack-1", Hosts: 2, Seen: &morning}, {Name: "rack-2", Hosts: 3, Seen: &morning, Lost: true}},
		Phases: map[string]int{"awake": 3, "asleep": 1}, Savings: v1.EnergySavings{KWh: 12.345, HostHours: 40, Since: &morning},
	}
}

func TestEnergyStatusTellsModesAlarmsAndSavings(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/energy", http.StatusOK, controlled())
	args := []string{"energy", "status"}
	for _, name := range []string{"Mode", "Set Mode", "Aggregates", "Hosts", "Stopped", "Breaker", "Stale Reason", "Phases", "Agents", "Alarms", "Saved kWh", "Saved Since"} {
		args = append(args, "-c", name)
	}
	got := almanac(t, a, args...)
	got.wantDone(t)
	const want = `
+--------------+-----------------------------------------------------+
| Field        | Value                                               |
+--------------+-----------------------------------------------------+
| Mode         | auto                                                |
| Set Mode     | auto                                                |
| Aggregates   | gpu: observe                                        |
| Hosts        | n1: auto                                            |
|              | n2: off                                             |
| Stopped      | by ann at 2026-12-01T09:00:00Z: repair              |
| Breaker      |                                                     |
| Stale Reason | nobody measures                                     |
| Phases       | asleep=1, awake=3                                   |
| Agents       | rack-1: 2 hosts                                     |
|              | rack-2: 3 hosts, lost since 2026-12-01T09:00:00Z    |
| Alarms       | 2026-12-01T09:00:00Z breaker: arm it                |
|              | 2026-12-01T09:00:00Z n1: look                       |
| Saved kWh    | 12.35                                               |
| Saved Since  | 2026-12-01T09:00:00Z                                |
+--------------+-----------------------------------------------------+
`
	if diff := cmp.Diff(unsized(want), unsized(got.stdout)); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

// unsized returns a printed table without its column widths.
func unsized(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		lines = append(lines, strings.Join(strings.Fields(strings.ReplaceAll(line, "-", "")), " "))
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), "++", "+")
}

func TestEnergyCommandsSendWhatTheyAreToldTo(t *testing.T) {
	for args, want := range map[string]string{
		"mode auto --reason x":                  `PATCH /v1/energy {"mode":"auto","reason":"x"}`,
		"mode default":                          `PATCH /v1/energy {"mode":null}`,
		"mode observe --aggregate gpu":          `PATCH /v1/energy {"aggregates":{"gpu":"observe"}}`,
		"mode default --host n[1-2]":            `PATCH /v1/energy {"hosts":{"n1":null,"n2":null}}`,
		"mode off --host n1 --aggregate gpu":    `PATCH /v1/energy {"aggregates":{"gpu":"off"},"hosts":{"n1":"off"}}`,
		"stop --reason x":                       `PATCH /v1/energy {"stop":true,"reason":"x"}`,
		"resume":                                `PATCH /v1/energy {"stop":false}`,
		"reset-breaker --reason x":              `PATCH /v1/energy {"reset_breaker":true,"reason":"x"}`,
		"approve p-1":                           `POST /v1/energy/plan {"approve":"p-1"}`,
		"host on n1 --reason x --until +2h":     `POST /v1/energy/hosts/n1 {"action":"on","reason":"x","until":"2026-12-01T11:00:00Z"}`,
		"host off n1 --until 2026-12-01T10:00Z": `POST /v1/energy/hosts/n1 {"action":"off","until":"2026-12-01T10:00:00Z"}`,
		"host standby n1":                       `POST /v1/energy/hosts/n1 {"action":"standby"}`,
		"host release n1":                       `POST /v1/energy/hosts/n1 {"action":"release"}`,
		"host test n1":                          `POST /v1/energy/hosts/n1 {"action":"test"}`,
		"host show n1":                          `GET /v1/energy/hosts/n1 `,
		"host list --phase asleep,waking":       `GET /v1/energy/hosts?limit=1000&phase=asleep%2Cwaking `,
		"audit --host n1 --limit 7":             `GET /v1/energy/audit?host=n1&limit=7 `,
	} {
		t.Run(args, func(t *testing.T) {
			a := newAPI(t)
			a.on("/v1/energy", http.StatusOK, v1.Energy{})
			a.on("/v1/energy/plan", http.StatusOK, v1.EnergyPlan{})
			a.on("/v1/energy/audit", http.StatusOK, v1.EnergyAudit{})
			a.on("/v1/energy/hosts", http.StatusOK, v1.EnergyHosts{})
			a.on("/v1/energy/hosts/n1", http.StatusOK, v1.EnergyHost{Name: "n1"})
			almanac(t, a, append([]string{"energy"}, strings.Fields(args)...)...).wantDone(t)
			if asked := a.asked()[0]; asked.Line+" "+asked.Body != want {
				t.Errorf("sent %s %s\nwant %s", asked.Line, asked.Body, want)
			}
		})
	}
}

func TestAWrongEnergyCommandAsksNothing(t *testing.T) {
	for args, want := range map[string]string{
		"mode on":                       `there is no mode "on"; there are off, observe, recommend, auto, default`,
		"mode":                          "needs one mode",
		"host list --phase sleeping":    "--phase",
		"host off":                      "requires at least 1 arg",
		"host off n1 --until yesterday": "is not a time",
		"host release n1 --until +2h":   "unknown flag",
		"host on n1 --dry-run":          "unknown flag",
		"host test n1 --dry-run --wait": "dry-run",
		"approve":                       "needs one ID",
		"host list --limit -1":          "--limit",
	} {
		t.Run(args, func(t *testing.T) {
			a := newAPI(t)
			almanac(t, a, append([]string{"energy"}, strings.Fields(args)...)...).wantFailure(t, exitUsage, want)
			if len(a.asked()) > 0 {
				t.Errorf("the requests are %v", a.lines())
			}
		})
	}
}

func thePlan() v1.EnergyPlan {
	return v1.EnergyPlan{
		ID: "p-1", At: morning, Forecast: 1, Reserved: 2, Required: 2, Spare: 1, On: 4, Short: "one is missing",
		Switches: []v1.EnergySwitch{{Host: "n1", To: "on", Reason: "reserved", Urgent: true}, {Host: "n2", To: "off", Reason: "idle"}},
		Kept:     []v1.EnergyKept{{Host: "n3", Reason: "the last one"}},
	}
}

func TestThePlanSaysWhatIsSwitchedAndWhatStays(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/energy/plan", http.StatusOK, thePlan())
	got := almanac(t, a, "energy", "plan", "--long", "-f", "csv")
	got.wantDone(t)
	if diff := cmp.Diff("Host,Move,Urgent,Reason\nn1,switch on,true,reserved\nn2,switch off,false,idle\nn3,stay on,false,the last one\n", got.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	const says = "plan p-1 of 2026-12-01T09:00:00Z: 2 hosts are required (1 forecast, 2 reserved), 1 more stay as spare, and 4 are on\none is missing\n"
	if diff := cmp.Diff(says, got.stderr); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
}

func TestADryRunOfAModeShowsWhatOfThePlanWouldBeCarriedOut(t *testing.T) {
	for mode, want := range map[string]string{"auto": "n1 switch on true reserved\nn2 switch off false idle\n", "observe": "n1 switch on true reserved\n", "default": "n1 switch on true reserved\n"} {
		a := newAPI(t)
		a.on("GET /v1/energy", http.StatusOK, controlled())
		a.on("GET /v1/energy/plan", http.StatusOK, thePlan())
		got := almanac(t, a, "energy", "mode", mode, "--dry-run", "-f", "value")
		got.wantDone(t)
		if got.stdout != want || !strings.Contains(got.stderr, "dry run: the mode stays auto") || !strings.Contains(got.stderr, "switched off now: by ann") {
			t.Errorf("%s: stdout %q, want %q; stderr %s", mode, got.stdout, want, got.stderr)
		}
		for _, line := range a.lines() {
			if !strings.HasPrefix(line, "GET") {
				t.Errorf("%s: sent %s", mode, line)
			}
		}
	}
}

func TestADryRunOfAnOrderSaysWhatItWouldComeTo(t *testing.T) {
	a := newAPI(t)
	a.on("POST /v1/energy/hosts/n1", http.StatusOK, v1.EnergyForeseen{Name: "n1", Phase: "awake", Outcome: "switched off"})
	a.mux.HandleFunc("POST /v1/energy/hosts/n2", fail(http.StatusConflict, "conflict", "host n2 has instances"))
	got := almanac(t, a, "energy", "host", "off", "n1", "n2", "--until", "+2h", "--reason", "x", "--dry-run", "-f", "csv")
	got.wantDone(t)
	if diff := cmp.Diff("Name,Phase,Outcome\nn1,awake,switched off\nn2,,refused: host n2 has instances\n", got.stdout); diff != "" || got.stderr != "dry run: nothing is ordered\n" {
		t.Errorf("stderr %s; stdout (-want +got):\n%s", got.stderr, diff)
	}
	const asked = `POST /v1/energy/hosts/n1?dry_run=true {"action":"off","reason":"x","until":"2026-12-01T11:00:00Z"}`
	if first := a.asked()[0]; first.Line+" "+first.Body != asked {
		t.Errorf("sent %s %s\nwant %s", first.Line, first.Body, asked)
	}
	a = newAPI(t)
	if got := almanac(t, a, "energy", "host", "off", "n3", "--dry-run"); got.code == exitDone {
		t.Errorf("an unknown host: exit code %d, stdout %s", got.code, got.stdout)
	}
}

func TestAnOrderThatFailsForOneIsGivenForTheOthers(t *testing.T) {
	a := newAPI(t)
	a.on("POST /v1/energy/hosts/n1", http.StatusAccepted, v1.EnergyHost{Name: "n1", Outcome: "accepted, but it waits: Nova does not answer"})
	a.mux.HandleFunc("POST /v1/energy/hosts/n2", fail(http.StatusConflict, "conflict", "host n2 has instances"))
	a.on("POST /v1/energy/hosts/n3", http.StatusAccepted, v1.EnergyHost{Name: "n3"})
	got := almanac(t, a, "energy", "host", "off", "n[1-3]", "-f", "value", "-c", "Name")
	if got.code != exitNoRoom || got.stdout != "n1\nn3\n" || !strings.Contains(got.stderr, "host n2: ") || !strings.Contains(got.stderr, "has instances") ||
		!strings.Contains(got.stderr, "n1: accepted, but it waits: Nova does not answer") {
		t.Errorf("exit code %d, stdout %q, stderr %s", got.code, got.stdout, got.stderr)
	}
}

func TestAWakeTestIsWaitedFor(t *testing.T) {
	held := &v1.EnergyHold{Action: "test", At: morning}
	tested := func(phase string, hold *v1.EnergyHold, proof *v1.EnergyWakeTest) v1.EnergyHost {
		return v1.EnergyHost{Name: "n1", Phase: phase, Hold: hold, LastWakeTest: proof}
	}
	old := &v1.EnergyWakeTest{At: morning.Add(-time.Hour), Woke: true, Seconds: 100}
	for name, test := range map[string]struct {
		seen []v1.EnergyHost
		code int
		says []string
	}{
		"it woke": {
			[]v1.EnergyHost{tested("awake", held, old), tested("stopping", held, old), tested("waking", held, old), tested("awake", nil, &v1.EnergyWakeTest{At: morning.Add(time.Minute), Woke: true, Seconds: 170})},
			exitDone, []string{"n1: awake", "n1: stopping", "n1: waking", "n1: awake", "n1: woke in 2m50s"},
		},
		"it did not": {
			[]v1.EnergyHost{tested("waking", held, nil), tested("failed", nil, &v1.EnergyWakeTest{At: morning.Add(time.Minute), Reason: "three tries"})},
			exitFailed, []string{"n1: waking", "n1: failed", "n1: did not wake at 2026-12-01T09:01:00Z: three tries", "not every host has woken"},
		},
		"given up": {
			[]v1.EnergyHost{tested("draining", held, old), tested("awake", nil, old)},
			exitFailed, []string{"n1: draining", "n1: awake", "the test was abandoned", "not every host has woken"},
		},
		"too long": {[]v1.EnergyHost{tested("waking", held, nil)}, exitTimedOut, []string{"n1: waking", "the test continues"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.on("POST /v1/energy/hosts/n1", http.StatusAccepted, test.seen[0])
			n := 0
			a.mux.HandleFunc("GET /v1/energy/hosts/n1", func(w http.ResponseWriter, r *http.Request) {
				n = min(n+1, len(test.seen)-1)
				answerWith(http.StatusOK, test.seen[n])(w, r)
			})
			got := almanac(t, a, "energy", "host", "test", "n1", "--wait", "--wait-timeout", "10s", "-f", "value", "-c", "Phase")
			if last := test.seen[len(test.seen)-1].Phase + "\n"; got.code != test.code || got.stdout != last {
				t.Errorf("exit code %d, want %d; stdout %q, want %q", got.code, test.code, got.stdout, last)
			}
			rest := got.stderr
			for _, line := range test.says {
				_, after, found := strings.Cut(rest, line)
				if !found {
					t.Fatalf("stderr does not continue with %q:\n%s", line, got.stderr)
				}
				rest = after
			}
		})
	}
}

func TestExplainTellsTheLastOperationAsAStory(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/energy/hosts/n1", http.StatusOK, v1.EnergyHost{
		Name: "n1", Phase: "asleep", Since: &morning, Reason: "it was idle", State: "off", Watts: 4.5, Quarantine: "it was late",
		Hold: &v1.EnergyHold{Action: "off", By: "ann", Reason: "repair"}, LastWakeTest: &v1.EnergyWakeTest{At: morning, Woke: true, Seconds: 90},
		Explanation: []string{"nothing needs it", "it is\x1b held"},
	})
	ordered := v1.EnergyEntry{ID: 2, At: morning.Add(2 * time.Minute), Host: "n1", Kind: "manual", By: "ann", Text: "ordered off"}
	entry := func(id int64, operation, text string) v1.EnergyEntry {
		return v1.EnergyEntry{ID: id, At: morning.Add(time.Duration(id) * time.Minute), Host: "n1", Kind: "phase", By: "almanac", Operation: operation, Text: text}
	}
	a.on("GET /v1/energy/audit", http.StatusOK, v1.EnergyAudit{Entries: []v1.EnergyEntry{
		entry(5, "", "held"), entry(4, "op-2", "asleep"), entry(3, "op-2", "draining"), ordered, entry(1, "op-1", "awake"), entry(1, "op-1", "waking"),
	}})
	got := almanac(t, a, "energy", "explain", "n1")
	got.wantDone(t)
	const want = `n1 is asleep since 2026-12-01T09:00:00Z: it was idle
  its machine reports off and draws 4.5 W
  in quarantine: it was late
  held off by ann: repair
  woke in 1m30s at 2026-12-01T09:00:00Z
Why:
  nothing needs it
  "it is\x1b held"
History:
  2026-12-01T09:02:00Z ann manual: ordered off
  2026-12-01T09:03:00Z almanac phase: draining
  2026-12-01T09:04:00Z almanac phase: asleep
  2026-12-01T09:05:00Z almanac phase: held
`
	if diff := cmp.Diff(want, got.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	for _, test := range []struct {
		entries []v1.EnergyEntry
		want    string
	}{
		{nil, ""},
		{[]v1.EnergyEntry{entry(1, "", "a")}, "a"},
		{[]v1.EnergyEntry{entry(7, "", "g"), entry(6, "", "f"), entry(5, "", "e"), entry(4, "", "d"), entry(3, "", "c"), entry(2, "", "b")}, "cdefg"},
		{[]v1.EnergyEntry{entry(3, "op", "c"), entry(2, "", "b"), entry(1, "op", "a")}, "abc"},
	} {
		if told := strings.Join(each(story(test.entries), func(e v1.EnergyEntry) string { return e.Text }), ""); told != test.want {
			t.Errorf("the story is %q, want %q", told, test.want)
		}
	}
	if got := almanac(t, a, "energy", "explain", "n1", "-f", "value", "-c", "Phase"); got.stdout != "asleep\n" {
		t.Errorf("one column is %q", got.stdout)
	}
}
