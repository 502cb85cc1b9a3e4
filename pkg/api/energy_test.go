// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// planned stores a plan, as the controller does.
func planned(c *cloud, id string, p energy.Plan) {
	c.t.Helper()
	must(c.t, c.store.ChangeEnergySettings(c.t.Context(), job.Lease{}, func(s *energy.Settings) ([]energy.Entry, error) {
		s.PlanID, s.Plan = id, &p
		return nil, nil
	}))
}

// remembered stores a record and entries about it, as the controller does.
func remembered(c *cloud, r energy.Record, entries ...energy.Entry) {
	c.t.Helper()
	must(c.t, c.store.ChangePower(c.t.Context(), job.Lease{}, []string{r.Host}, func(stored map[string]energy.Record) ([]energy.Entry, error) {
		stored[r.Host] = r
		return entries, nil
	}))
}

// measured stores what the controller saw: A has instances, B sleeps, and nothing can switch C.
func measured(c *cloud) {
	c.t.Helper()
	must(c.t, c.store.SaveEnergyReport(c.t.Context(), job.Lease{}, energy.Report{
		At: noon, Controller: "ctl-1", Halt: "the inventory is untrusted",
		Alarms: []energy.Alarm{{Kind: energy.AlarmStuck, Host: "B", Text: "look at it", Since: noon.Add(-60)}},
		Agents: []energy.Agent{{Name: "rack-1", Hosts: 2, Seen: noon, Lost: true}},
		Hosts: []energy.Observed{
			{
				Machine: energy.Machine{Name: "A", Busy: true, Claimed: noon.Add(-7), States: []energy.State{energy.On, energy.Off}},
				Reading: energy.Reading{Host: "A", State: energy.On, Watts: 212.5, At: noon}, Agent: "rack-1", Driver: "redfish", Mode: energy.ModeAuto,
				Explanation: []string{"it has instances"},
			},
			{
				Machine: energy.Machine{Name: "B", Idle: 9, Claimed: span.Forever, BootSeconds: 180, States: []energy.State{energy.On, energy.Off}},
				Reading: energy.Reading{Host: "B", State: energy.Off, Watts: math.Inf(1)}, Agent: "rack-1", Driver: "ipmi", Mode: energy.ModeObserve,
			},
			{Machine: energy.Machine{Name: "C", Claimed: span.Forever}, Reading: energy.Reading{Host: "C", Problem: "no agent"}},
		},
	}))
	remembered(c, energy.Record{
		Host: "B", Phase: energy.Asleep, Since: noon.Add(-600), Reason: "idle", Target: energy.Off, Operation: "op-1", Boots: []int64{170, 180},
		LastOff: noon.Add(-600), Mode: energy.ModeObserve, Quarantine: "it did not wake", LastWakeTest: &energy.WakeTest{At: 7, Woke: true, Seconds: 180},
		Hold: &energy.Hold{Action: energy.HoldOff, Reason: "repair", By: "ada", At: noon.Add(-700)},
	}, energy.Entry{At: noon.Add(-600), Host: "B", Kind: energy.EntryOrder, By: "almanac", Operation: "op-1", Text: "ordered off"})
}

func TestTheControllerIsShownAsItIsStored(t *testing.T) {
	c := start(t, setup{})
	measured(c)
	must(t, c.store.ChangeEnergySettings(t.Context(), job.Lease{}, func(s *energy.Settings) ([]energy.Entry, error) {
		*s = energy.Settings{
			Mode: energy.ModeAuto, Aggregates: map[string]energy.Mode{"gpu": energy.ModeOff}, FailedBoots: 3,
			Stopped: &energy.Stop{By: "ada", Reason: "repair", At: noon}, Breaker: &energy.Stop{By: "almanac", Reason: "3 boots failed", At: noon},
			Savings: energy.Savings{
				Since: noon.Add(-7200), Until: noon, HostSeconds: 5400, CoreSeconds: 7200, IdleCoreSeconds: 1800, Joules: 7.2e6, Unknown: 360, Boots: 2, Delay: 0.25,
			},
		}
		return nil, nil
	}))
	got := want[v1.Energy](t, c.admin.get("/v1/energy"), http.StatusOK)
	if got.Savings.Baseline == "" {
		t.Error("the savings have no baseline")
	}
	got.Savings.Baseline = ""
	expected := v1.Energy{
		Mode: "auto", EffectiveMode: "auto", ConfiguredMode: "off", Aggregates: map[string]string{"gpu": "off"}, Hosts: map[string]string{"B": "observe"},
		Stopped: &v1.EnergyStop{By: "ada", Reason: "repair", At: noon.Time()}, Breaker: &v1.EnergyStop{By: "almanac", Reason: "3 boots failed", At: noon.Time()},
		FailedBoots: 3, Halt: "the inventory is untrusted", MeasuredAt: new(noon.Time()), Controller: "ctl-1",
		Alarms: []v1.EnergyAlarm{{Kind: "stuck", Host: "B", Text: "look at it", Since: noon.Add(-60).Time()}},
		Agents: []v1.EnergyAgent{{Name: "rack-1", Hosts: 2, Seen: new(noon.Time()), Lost: true}},
		Phases: map[string]int{"awake": 2, "draining": 0, "stopping": 0, "asleep": 1, "waking": 0, "failed": 0},
		Savings: v1.EnergySavings{
			Since: new(noon.Add(-7200).Time()), Until: new(noon.Time()), KWh: 2, HostHours: 1.5, UnknownHostHours: 0.1, Boots: 2,
			ResIdle: 0.5, ESavings: 2, DelayReq: 0.25,
		},
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("energy (-want +got):\n%s", diff)
	}
	c.seconds.Add(181)
	if got := want[v1.Energy](t, c.admin.get("/v1/energy"), http.StatusOK); !strings.Contains(got.Stale, "3m1s ago") {
		t.Errorf("three minutes later stale is %q", got.Stale)
	}
}

func TestWithoutAControllerThereIsNoneToAsk(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.Energy = nil }})
	if e := wantError(t, c.admin.get("/v1/energy"), http.StatusNotFound); !strings.Contains(e.Message, "no energy controller") {
		t.Errorf("got %+v", e)
	}
	wantError(t, c.demo.get("/v1/energy"), http.StatusForbidden)
}

func TestAChangeOfTheControllerIsStoredAndAudited(t *testing.T) {
	fast := machine("A")
	fast.Aggregates = []string{"gpu"}
	c := start(t, setup{hosts: []inventory.Host{fast, machine("B")}})
	change := func(body string) v1.Energy {
		t.Helper()
		return want[v1.Energy](t, c.admin.patch("/v1/energy", body), http.StatusOK)
	}
	if e := change(`{"mode": "recommend", "aggregates": {"gpu": "observe"}, "hosts": {"B": "auto"}}`); e.Mode != "recommend" || e.EffectiveMode != "recommend" ||
		!cmp.Equal(e.Aggregates, map[string]string{"gpu": "observe"}) || !cmp.Equal(e.Hosts, map[string]string{"B": "auto"}) {
		t.Errorf("got %+v", e)
	}
	if e := change(`{"stop": true, "reason": "repair"}`); e.Stopped == nil || *e.Stopped != (v1.EnergyStop{By: "demo-user", At: noon.Time(), Reason: "repair"}) || e.Mode != "recommend" {
		t.Errorf("stopped: got %+v", e)
	}
	if e := change(`{"mode": null, "aggregates": {"gpu": null}, "hosts": {"B": ""}, "stop": false}`); e.Mode != "" || e.EffectiveMode != "off" || len(e.Aggregates)+len(e.Hosts) > 0 || e.Stopped != nil {
		t.Errorf("taken away: got %+v", e)
	}
	must(t, c.store.ChangeEnergySettings(t.Context(), job.Lease{}, func(s *energy.Settings) ([]energy.Entry, error) {
		s.Breaker, s.FailedBoots = &energy.Stop{}, 3
		return nil, nil
	}))
	if e := change(`{"reason": "none"}`); e.Breaker == nil {
		t.Error("it was armed by a change of nothing")
	}
	if e := change(`{"reset_breaker": true}`); e.Breaker != nil || e.FailedBoots != 0 {
		t.Errorf("armed: got %+v", e)
	}
	audit := want[v1.EnergyAudit](t, c.admin.get("/v1/energy/audit"), http.StatusOK).Entries
	for _, e := range audit {
		if e.By != "demo-user" || e.Kind != "setting" || !e.At.Equal(noon.Time()) {
			t.Errorf("the audit has %+v", e)
		}
	}
	if len(audit) != 9 {
		t.Errorf("the audit has %d changes, want 9: %+v", len(audit), audit)
	}
}

func TestAWrongChangeOfTheControllerIsToldItsField(t *testing.T) {
	fast := machine("A")
	fast.Aggregates = []string{"gpu"}
	c := start(t, setup{hosts: []inventory.Host{fast}})
	for name, m := range map[string]mistake{
		"unknown mode":         {`{"mode": "on"}`, "mode", "there is no mode on", false},
		"mode is a number":     {`{"mode": 1}`, "mode", "must be a string", false},
		"unknown aggregate":    {`{"aggregates": {"gpus": "off"}}`, "aggregates.gpus", `did you mean "gpu"?`, true},
		"unknown mode of one":  {`{"aggregates": {"gpu": "on"}}`, "aggregates.gpu", "there is no mode on", false},
		"unknown mode of host": {`{"hosts": {"A": "on"}}`, "hosts.A", "there is no mode on", false},
		"half a list of hosts": {`{"hosts": {"A[1": "off"}}`, "hosts", "has no \"]\"", true},
		"two modes of a host":  {`{"hosts": {"A": "off", "A,B": "auto"}}`, "hosts", "host A has two modes", true},
		"aggregates is a list": {`{"aggregates": ["gpu"]}`, "aggregates", "must be an object of strings", false},
		"stop in words":        {`{"stop": "yes"}`, "stop", "must be true or false", false},
		"unknown field":        {`{"modus": "off"}`, "modus", `did you mean "mode"?`, false},
	} {
		t.Run(name, func(t *testing.T) { m.hold(t, c, "PATCH", "/v1/energy") })
	}
	wantError(t, c.admin.patch("/v1/energy", `{"hosts": {"Z": "off"}}`), http.StatusNotFound)
}

func TestThePlanOfNowIsApproved(t *testing.T) {
	c := start(t, setup{})
	if e := wantError(t, c.admin.get("/v1/energy/plan"), http.StatusNotFound); !strings.Contains(e.Message, "no plan has been made yet; the mode is off") {
		t.Errorf("got %+v", e)
	}
	planned(c, "p-1", energy.Plan{
		At: noon, Forecast: 1, Reserved: 2, Required: 2, Spare: 1, On: 3, Short: "one host is missing",
		Switches: []energy.Switch{{Host: "B", To: energy.Off, Reason: "idle", Urgent: true}}, Kept: []energy.Kept{{Host: "C", Reason: "the last one"}},
	})
	expected := v1.EnergyPlan{
		ID: "p-1", At: noon.Time(), Forecast: 1, Reserved: 2, Required: 2, Spare: 1, On: 3, Short: "one host is missing",
		Switches: []v1.EnergySwitch{{Host: "B", To: "off", Reason: "idle", Urgent: true}}, Kept: []v1.EnergyKept{{Host: "C", Reason: "the last one"}},
	}
	if diff := cmp.Diff(expected, want[v1.EnergyPlan](t, c.admin.get("/v1/energy/plan"), http.StatusOK)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	wantError(t, c.admin.post("/v1/energy/plan", `{"approve": "p-0"}`), http.StatusConflict)
	expected.Approved = &v1.EnergyApproval{By: "demo-user", At: noon.Time()}
	for name, a := range map[string]answer{"approved": c.admin.post("/v1/energy/plan", `{"approve": "p-1"}`), "shown": c.admin.get("/v1/energy/plan")} {
		if diff := cmp.Diff(expected, want[v1.EnergyPlan](t, a, http.StatusOK)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	planned(c, "p-2", energy.Plan{At: noon})
	wantError(t, c.admin.post("/v1/energy/plan", `{"approve": "p-1"}`), http.StatusConflict)
	if p := want[v1.EnergyPlan](t, c.admin.get("/v1/energy/plan"), http.StatusOK); p.Approved != nil {
		t.Errorf("another plan has the approval %+v", p.Approved)
	}
	mistake{`{}`, "approve", "is required", false}.hold(t, c, "POST", "/v1/energy/plan")
}

func TestEveryHostIsListedWithItsPower(t *testing.T) {
	c := start(t, setup{})
	measured(c)
	sleeping := v1.EnergyHost{
		Name: "B", Phase: "asleep", Since: new(noon.Add(-600).Time()), Reason: "idle", Target: "off", Operation: "op-1", State: "off", Watts: math.MaxFloat64,
		Agent: "rack-1", Driver: "ipmi", States: []string{"on", "off"}, Idle: 9, BootSeconds: 180, Boots: []int64{170, 180}, LastOff: new(noon.Add(-600).Time()),
		LastWakeTest: &v1.EnergyWakeTest{At: span.Instant(7).Time(), Woke: true, Seconds: 180}, Quarantine: "it did not wake", Mode: "observe", EffectiveMode: "observe",
		Hold: &v1.EnergyHold{Action: "off", Reason: "repair", By: "ada", At: noon.Add(-700).Time()}, Explanation: []string{},
	}
	all := []v1.EnergyHost{
		{
			Name: "A", Phase: "awake", State: "on", Watts: 212.5, ReadAt: new(noon.Time()), Agent: "rack-1", Driver: "redfish", States: []string{"on", "off"},
			Busy: true, ReservedFrom: new(noon.Add(-7).Time()), Boots: []int64{}, EffectiveMode: "auto", Explanation: []string{"it has instances"},
		},
		sleeping,
		{Name: "C", Phase: "awake", Problem: "no agent", States: []string{}, Boots: []int64{}, Explanation: []string{}},
	}
	for query, expected := range map[string]v1.EnergyHosts{
		"":                         {Hosts: all},
		"?limit=2":                 {Hosts: all[:2], Next: "B"},
		"?limit=2&marker=B":        {Hosts: all[2:]},
		"?phase=asleep":            {Hosts: all[1:2]},
		"?phase=awake,asleep":      {Hosts: all},
		"?phase=awake&limit=1":     {Hosts: all[:1], Next: "A"},
		"?phase=failed&marker=AAA": {Hosts: []v1.EnergyHost{}},
	} {
		if diff := cmp.Diff(expected, want[v1.EnergyHosts](t, c.admin.get("/v1/energy/hosts"+query), http.StatusOK)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	sleeping.History = []v1.EnergyEntry{{ID: 1, At: noon.Add(-600).Time(), Host: "B", Kind: "order", By: "almanac", Operation: "op-1", Text: "ordered off"}}
	if diff := cmp.Diff(sleeping, want[v1.EnergyHost](t, c.admin.get("/v1/energy/hosts/B"), http.StatusOK)); diff != "" {
		t.Errorf("one host (-want +got):\n%s", diff)
	}
	if e := wantError(t, c.admin.get("/v1/energy/hosts?phase=aslep"), http.StatusBadRequest); e.Field != "phase" || !strings.Contains(e.Message, "asleep") {
		t.Errorf("got %+v", e)
	}
	wantError(t, c.admin.get("/v1/energy/hosts/Z"), http.StatusNotFound)
}

func TestAManualOrderHoldsUntilItsEnd(t *testing.T) {
	c := start(t, setup{})
	measured(c)
	for body, until := range map[string]span.Instant{
		`{"action": "on", "reason": "a test"}`:                                       0,
		`{"action": "off", "reason": "a test", "until": "2h30m"}`:                    noon.Add(9000),
		`{"action": "on", "reason": "a test", "until": "90"}`:                        noon.Add(90),
		`{"action": "off", "reason": "a test", "until": "2026-11-20T13:00:00.9Z"}`:   noon.Add(3600),
		`{"action": "on", "reason": "a test", "until": "2026-11-20T15:00:00+02:00"}`: noon.Add(3600),
		`{"action": "test", "reason": "a test"}`:                                     0,
		`{"action": "on", "reason": "a test", "until": null}`:                        0,
		`{"action": "off", "reason": "a test", "until": "8999-12-31T23:59:59Z"}`:     span.At(time.Date(8999, 12, 31, 23, 59, 59, 0, time.UTC)),
	} {
		h := want[v1.EnergyHost](t, c.admin.post("/v1/energy/hosts/B", body), http.StatusAccepted)
		expected := v1.EnergyHold{Action: strings.Split(body, `"`)[3], Reason: "a test", By: "demo-user", At: noon.Time()}
		if until != 0 {
			expected.Until = new(until.Time())
		}
		if diff := cmp.Diff(&expected, h.Hold); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
		if h.History[0].Kind != "manual" || h.History[0].By != "demo-user" {
			t.Errorf("%s: the audit ends with %+v", body, h.History[0])
		}
	}
	if h := want[v1.EnergyHost](t, c.admin.post("/v1/energy/hosts/B", `{"action": "release"}`), http.StatusAccepted); h.Hold != nil || h.Quarantine != "" {
		t.Errorf("after the release the hold is %+v and the quarantine %q", h.Hold, h.Quarantine)
	}
	wantError(t, c.admin.post("/v1/energy/hosts/A", `{"action": "off"}`), http.StatusConflict)
	wantError(t, c.admin.post("/v1/energy/hosts/A?dry_run=true", `{"action": "off"}`), http.StatusConflict)
	wantError(t, c.admin.post("/v1/energy/hosts/Z", `{"action": "on"}`), http.StatusNotFound)
}

func TestADryRunOfAnOrderSaysWhatItWouldComeToAndStoresNothing(t *testing.T) {
	c := start(t, setup{})
	measured(c)
	before := want[v1.EnergyHost](t, c.admin.get("/v1/energy/hosts/B"), http.StatusOK)
	got := want[v1.EnergyForeseen](t, c.admin.post("/v1/energy/hosts/B?dry_run=true", `{"action": "test"}`), http.StatusOK)
	if diff := cmp.Diff(v1.EnergyForeseen{Name: "B", Phase: "asleep", Outcome: "switched on, to test that it wakes"}, got); diff != "" {
		t.Errorf("foreseen (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, want[v1.EnergyHost](t, c.admin.get("/v1/energy/hosts/B"), http.StatusOK)); diff != "" {
		t.Errorf("the host has changed (-before +after):\n%s", diff)
	}
	mistake{`{}`, "action", "is required", false}.hold(t, c, "POST", "/v1/energy/hosts/B?dry_run=true")
	if e := wantError(t, c.admin.post("/v1/energy/hosts/B?dry=true", `{"action": "test"}`), http.StatusBadRequest); e.Field != "dry" {
		t.Errorf("got %+v", e)
	}
}

func TestAHostThatLeftTheInventoryIsForgottenWhenItIsReleased(t *testing.T) {
	c := start(t, setup{})
	remembered(c, energy.Record{Host: "gone", Mode: energy.ModeAuto})
	h := want[v1.EnergyHost](t, c.admin.post("/v1/energy/hosts/gone", `{"action": "release"}`), http.StatusAccepted)
	if h.Name != "gone" || h.ReservedFrom != nil || len(h.History) != 1 || !strings.Contains(h.History[0].Text, "record is deleted") {
		t.Errorf("got %+v", h)
	}
	if e := want[v1.Energy](t, c.admin.get("/v1/energy"), http.StatusOK); len(e.Hosts) > 0 {
		t.Errorf("hosts with modes are %v", e.Hosts)
	}
	wantError(t, c.admin.post("/v1/energy/hosts/gone", `{"action": "release"}`), http.StatusNotFound)
}

func TestAWrongOrderIsToldItsField(t *testing.T) {
	c := start(t, setup{})
	measured(c)
	for name, m := range map[string]mistake{
		"no action":             {`{}`, "action", "is required", false},
		"unknown action":        {`{"action": "of"}`, "action", "there is no action of", false},
		"action is a truth":     {`{"action": true}`, "action", "must be a string", false},
		"until in words":        {`{"action": "on", "until": "soon"}`, "until", `"soon" is not an end`, false},
		"until is negative":     {`{"action": "on", "until": "-5m"}`, "until", "is not an end", false},
		"until now":             {`{"action": "on", "until": "0"}`, "until", "is not an end", true},
		"until lies behind":     {`{"action": "on", "until": "2026-11-20T11:59:59Z"}`, "until", "future", true},
		"until the epoch":       {`{"action": "on", "until": "1970-01-01T00:00:00Z"}`, "until", "future", true},
		"until beyond all time": {`{"action": "on", "until": "9999-12-31T00:00:00Z"}`, "until", "years up to 8999", true},
		"until is too long":     {`{"action": "on", "until": "9223372036854775807"}`, "until", "years up to 8999", true},
		"until of a release":    {`{"action": "release", "until": "2h"}`, "until", "is only for", true},
		"until of a test":       {`{"action": "test", "until": "2h"}`, "until", "is only for", true},
	} {
		t.Run(name, func(t *testing.T) { m.hold(t, c, "POST", "/v1/energy/hosts/B") })
	}
}

func TestTheAuditIsReadPageByPage(t *testing.T) {
	c := start(t, setup{})
	for i := range 5 {
		host := []string{"A", "B"}[i%2]
		remembered(c, energy.Record{Host: host}, energy.Entry{At: noon.Add(int64(i)), Host: host, Kind: energy.EntryPhase, By: "almanac", Text: "x"})
	}
	read := func(query string) (ids []int64, next *int64) {
		t.Helper()
		page := want[v1.EnergyAudit](t, c.admin.get("/v1/energy/audit"+query), http.StatusOK)
		for _, e := range page.Entries {
			ids = append(ids, e.ID)
		}
		return ids, page.Next
	}
	type page struct {
		IDs  []int64
		Next *int64
	}
	for query, expected := range map[string]page{
		"":                  {[]int64{5, 4, 3, 2, 1}, nil},
		"?limit=2":          {[]int64{5, 4}, new(int64(4))},
		"?limit=2&before=4": {[]int64{3, 2}, new(int64(2))},
		"?limit=2&before=2": {[]int64{1}, nil},
		"?host=B":           {[]int64{4, 2}, nil},
		"?host=B&limit=1":   {[]int64{4}, new(int64(4))},
		"?host=Z":           {nil, nil},
	} {
		ids, next := read(query)
		if diff := cmp.Diff(expected, page{ids, next}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	if e := wantError(t, c.admin.get("/v1/energy/audit?before=0"), http.StatusBadRequest); e.Field != "before" {
		t.Errorf("got %+v", e)
	}
}

func TestDemandIsToldOfTheLastDayOrLonger(t *testing.T) {
	c := start(t, setup{})
	const day = 86400
	var all []v1.EnergyDemand
	for _, at := range []span.Instant{noon.Add(-day - 1), noon.Add(-day), noon} {
		must(t, c.store.AddDemand(t.Context(), job.Lease{}, energy.Demand{At: at, InUse: 2, Reserved: 1}, 0))
		all = append(all, v1.EnergyDemand{At: at.Time(), InUse: 2, Reserved: 1})
	}
	for query, expected := range map[string][]v1.EnergyDemand{"": all[1:], "?from=2026-11-01T00:00:00Z": all, "?from=2027-01-01T00:00:00Z": {}} {
		if diff := cmp.Diff(expected, want[v1.EnergyDemands](t, c.admin.get("/v1/energy/demand"+query), http.StatusOK).Demand); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	wantError(t, c.admin.get("/v1/energy/demand?from=yesterday"), http.StatusBadRequest)
}
