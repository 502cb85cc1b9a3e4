// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

func testPower(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("the last record of each host is stored", func(t *testing.T) { testPowerRecords(t, open(t)) })
	t.Run("many hosts change at once", func(t *testing.T) { testManyPowerRecords(t, open(t)) })
	t.Run("the last settings are stored", func(t *testing.T) { testEnergySettings(t, open(t)) })
	t.Run("the audit tells the latest first, page by page", func(t *testing.T) { testAudit(t, open(t)) })
	t.Run("the audit tells the phases since an instant, the oldest first, and the last ones before", func(t *testing.T) { testPhases(t, open(t)) })
	t.Run("the audit is purged by age", func(t *testing.T) { testPurgedAudit(t, open(t)) })
	t.Run("the last report is stored", func(t *testing.T) { testEnergyReport(t, open(t)) })
	t.Run("demand is kept in order of time until it is old", func(t *testing.T) { testDemand(t, open(t)) })
}

// aPhase returns a change that puts a host into a phase.
func aPhase(host string, phase energy.Phase) func(stored map[string]energy.Record) ([]energy.Entry, error) {
	return func(stored map[string]energy.Record) ([]energy.Entry, error) {
		r := stored[host]
		r.Phase = phase
		stored[host] = r
		return []energy.Entry{{Host: host, Kind: energy.EntryPhase, Text: string(phase)}}, nil
	}
}

// aMode returns a change that sets a mode.
func aMode(mode energy.Mode) func(stored *energy.Settings) ([]energy.Entry, error) {
	return func(stored *energy.Settings) ([]energy.Entry, error) {
		stored.Mode = mode
		return []energy.Entry{{Kind: energy.EntrySetting, Text: string(mode)}}, nil
	}
}

// wantNoPower fails if anything of the energy controller is stored.
func wantNoPower(t *testing.T, s power) {
	t.Helper()
	records, err := s.PowerRecords(t.Context())
	settings, settingsErr := s.EnergySettings(t.Context())
	report, reportErr := s.EnergyReport(t.Context())
	demand, demandErr := s.Demand(t.Context(), 0)
	audit, auditErr := s.Audit(t.Context(), "", 0, 0)
	if err := errors.Join(err, settingsErr, reportErr, demandErr, auditErr); err != nil {
		t.Error(err)
	}
	got := []any{records, settings, report, demand, audit}
	if d := diff([]any{map[string]energy.Record{}, energy.Settings{}, energy.Report{}, []energy.Demand{}, []energy.Entry{}}, got); d != "" {
		t.Errorf("stored of the energy controller (-want +got):\n%s", d)
	}
}

func testPowerRecords(t *testing.T, subject Subject) {
	s, want := offered[power](t, subject), map[string]energy.Record{}
	hosts := []string{"node-1", "node-2", "NODE-1", "node-1 "}
	rapid.Check(t, func(rt *rapid.T) {
		named := rapid.SliceOfN(rapid.SampledFrom(hosts), 0, 3).Draw(rt, "hosts")
		next := map[string]energy.Record{}
		for _, host := range named {
			if rapid.IntRange(0, 3).Draw(rt, "forgotten") > 0 {
				next[host] = anyRecord(host).Draw(rt, "record")
			}
		}
		err := s.ChangePower(rt.Context(), job.Lease{}, named, func(stored map[string]energy.Record) ([]energy.Entry, error) {
			for _, host := range named {
				before := energy.Record{Host: host}
				if r, is := want[host]; is {
					before = r
				}
				if d := diff(before, stored[host]); d != "" {
					rt.Errorf("stored before (-want +got):\n%s", d)
				}
			}
			clear(stored)
			for host, r := range next {
				stored[host] = r
			}
			stored["another"] = energy.Record{Host: "another"}
			return nil, nil
		})
		if err != nil {
			rt.Fatalf("change power: %v", err)
		}
		refused := errors.New("refused")
		err = s.ChangePower(rt.Context(), job.Lease{}, named, func(stored map[string]energy.Record) ([]energy.Entry, error) {
			clear(stored)
			return []energy.Entry{{Text: "never"}}, refused
		})
		if !errors.Is(err, refused) {
			rt.Errorf("a refused change returns %v", err)
		}
		for _, host := range named {
			delete(want, host)
			if r, is := next[host]; is {
				want[host] = r
			}
		}
		got, err := s.PowerRecords(rt.Context())
		if err != nil {
			rt.Fatalf("power records: %v", err)
		}
		if d := diff(want, got); d != "" {
			rt.Errorf("records (-want +got):\n%s", d)
		}
	})
	if entries, err := s.Audit(t.Context(), "", 0, 0); len(entries) > 0 || err != nil {
		t.Errorf("the audit tells of %v: %v", entries, err)
	}
}

func testManyPowerRecords(t *testing.T, subject Subject) {
	s := offered[power](t, subject)
	var hosts []string
	for i := range 2100 {
		hosts = append(hosts, fmt.Sprint("node-", i))
	}
	for _, phase := range []energy.Phase{energy.Draining, energy.Asleep} {
		err := s.ChangePower(t.Context(), job.Lease{}, hosts, func(stored map[string]energy.Record) ([]energy.Entry, error) {
			for _, host := range hosts {
				r := stored[host]
				r.Phase, r.Number = phase, r.Number+1
				stored[host] = r
			}
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.PowerRecords(t.Context())
	if len(got) != len(hosts) || err != nil {
		t.Fatalf("%d records: %v", len(got), err)
	}
	for _, host := range hosts {
		if d := diff(energy.Record{Host: host, Phase: energy.Asleep, Number: 2}, got[host]); d != "" {
			t.Fatalf("%s (-want +got):\n%s", host, d)
		}
	}
}

func testEnergySettings(t *testing.T, subject Subject) {
	s, want := offered[power](t, subject), energy.Settings{}
	wantNoPower(t, s)
	rapid.Check(t, func(rt *rapid.T) {
		next := anySettings().Draw(rt, "settings")
		err := s.ChangeEnergySettings(rt.Context(), job.Lease{}, func(stored *energy.Settings) ([]energy.Entry, error) {
			if d := diff(want, *stored); d != "" {
				rt.Errorf("stored before (-want +got):\n%s", d)
			}
			*stored = next
			return nil, nil
		})
		if err != nil {
			rt.Fatalf("change settings: %v", err)
		}
		want = next
		refused := errors.New("refused")
		err = s.ChangeEnergySettings(rt.Context(), job.Lease{}, func(stored *energy.Settings) ([]energy.Entry, error) {
			stored.FailedBoots++
			return []energy.Entry{{Text: "never"}}, refused
		})
		if !errors.Is(err, refused) {
			rt.Errorf("a refused change returns %v", err)
		}
		got, err := s.EnergySettings(rt.Context())
		if err != nil {
			rt.Fatalf("energy settings: %v", err)
		}
		if d := diff(want, got); d != "" {
			rt.Errorf("settings (-want +got):\n%s", d)
		}
	})
}

// tell adds entries to the audit.
func tell(t *testing.T, s power, entries ...energy.Entry) {
	t.Helper()
	err := s.ChangePower(t.Context(), job.Lease{}, nil, func(map[string]energy.Record) ([]energy.Entry, error) { return entries, nil })
	if err != nil {
		t.Fatal(err)
	}
}

func testAudit(t *testing.T, subject Subject) {
	s := offered[power](t, subject)
	var told []energy.Entry
	for i := range 7 {
		e := energy.Entry{
			At: span.Instant(100 - i), Host: []string{"a", "b", ""}[i%3], Kind: energy.EntryOrder, By: "almanac", Operation: fmt.Sprint("op-", i), Text: fmt.Sprint("entry ", i),
		}
		told = append(told, e)
	}
	tell(t, s, told[:3]...)
	tell(t, s, told[3:]...)
	page := func(host string, before int64, limit int) []energy.Entry {
		t.Helper()
		got, err := s.Audit(t.Context(), host, before, limit)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	all := page("", 0, 0)
	ids := map[int64]bool{}
	got := slices.Clone(all)
	slices.Reverse(got)
	for i := range got {
		if i > 0 && got[i].ID <= got[i-1].ID {
			t.Errorf("entry %d has the id %d after %d", i, got[i].ID, got[i-1].ID)
		}
		ids[got[i].ID], got[i].ID = true, 0
	}
	if d := diff(told, got); d != "" || ids[0] {
		t.Fatalf("the audit, backwards (-want +got):\n%s", d)
	}
	if d := diff(all[2:5], page("", all[1].ID, 3)); d != "" {
		t.Errorf("second page (-want +got):\n%s", d)
	}
	if d := diff([]energy.Entry{all[3], all[6]}, page("a", all[0].ID, 9)); d != "" {
		t.Errorf("of one host (-want +got):\n%s", d)
	}
	tell(t, s, energy.Entry{Host: "long", By: strings.Repeat("ä", 300), Operation: "\xff", Text: strings.Repeat("ä", 1<<17)})
	if cut := page("long", 0, 0)[0]; cut.By != strings.Repeat("ä", 255) || cut.Operation != "\uFFFD" || !strings.HasPrefix(cut.Text, "ää") {
		t.Errorf("what a column cannot hold is kept as %d, %q, %d bytes", len(cut.By), cut.Operation, len(cut.Text))
	}
}

// phases reads the phases of hosts.
type phases interface {
	Phases(ctx context.Context, from span.Instant, limit int) ([]energy.Entry, error)
	PhasesBefore(ctx context.Context, from span.Instant) ([]energy.Entry, error)
}

func testPhases(t *testing.T, subject Subject) {
	s, read := offered[power](t, subject), offered[phases](t, subject)
	for at := span.Instant(100); at < 104; at++ {
		tell(t, s, energy.Entry{At: at, Host: "h", Kind: energy.EntryPhase, Text: fmt.Sprint(at)}, energy.Entry{At: at, Host: "h", Kind: energy.EntryOrder})
	}
	for limit, want := range map[int]string{9: "101 102 103", 2: "101 102"} {
		got, err := read.Phases(t.Context(), 101, limit)
		var texts []string
		for _, e := range got {
			texts = append(texts, fmt.Sprint(int64(e.At)))
		}
		if strings.Join(texts, " ") != want || err != nil {
			t.Errorf("at most %d from 101 on: %v, %v, want %s", limit, texts, err, want)
		}
	}
	tell(t, s, energy.Entry{At: 99, Host: "quiet", Kind: energy.EntryPhase, Text: "99"})
	got, err := read.PhasesBefore(t.Context(), 102)
	if len(got) != 1 || got[0].Host != "h" || got[0].At != 101 || err != nil {
		t.Errorf("the last phases before 102 of hosts with later ones: %v, %v, want that of h at 101", got, err)
	}
}

func testPurgedAudit(t *testing.T, subject Subject) {
	s := offered[power](t, subject)
	old := make([]energy.Entry, 1000)
	for i := range old {
		old[i] = energy.Entry{At: 99, Text: "old"}
	}
	tell(t, s, energy.Entry{At: 100, Text: "young"})
	tell(t, s, old...)
	for _, want := range []int{1000, 0} {
		if n, err := s.PurgeAudit(t.Context(), job.Lease{}, 100); n != want || err != nil {
			t.Fatalf("purged %d (%v), want %d", n, err, want)
		}
	}
	if left, err := s.Audit(t.Context(), "", 0, 0); len(left) != 1 || left[0].Text != "young" || err != nil {
		t.Errorf("left are %v: %v", left, err)
	}
}

func testEnergyReport(t *testing.T, subject Subject) {
	s := offered[power](t, subject)
	save := func(tb reporter, r, want energy.Report) {
		if err := s.SaveEnergyReport(t.Context(), job.Lease{}, r); err != nil {
			tb.Fatalf("save: %v", err)
		}
		got, err := s.EnergyReport(t.Context())
		if err != nil {
			tb.Fatalf("report: %v", err)
		}
		if d := diff(want, got); d != "" {
			tb.Errorf("report (-want +got):\n%s", d)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		r := anyReport().Draw(rt, "report")
		save(rt, r, r)
	})
	save(t, energy.Report{Hosts: []energy.Observed{{
		Machine: energy.Machine{FlopsPerWatt: math.Inf(1), Draw: energy.Draw{Idle: math.NaN()}}, Reading: energy.Reading{Watts: math.Inf(-1)},
	}}}, energy.Report{Hosts: []energy.Observed{{
		Machine: energy.Machine{FlopsPerWatt: math.MaxFloat64}, Reading: energy.Reading{Watts: -math.MaxFloat64},
	}}})
}

func testDemand(t *testing.T, subject Subject) {
	s := offered[power](t, subject)
	for _, step := range []struct {
		add        energy.Demand
		keep, from span.Instant
		want       []energy.Demand
	}{
		{energy.Demand{At: 200, InUse: 2, Reserved: 1}, 0, 0, []energy.Demand{{At: 200, InUse: 2, Reserved: 1}}},
		{energy.Demand{At: 100, InUse: 1}, 0, 0, []energy.Demand{{At: 100, InUse: 1}, {At: 200, InUse: 2, Reserved: 1}}},
		{energy.Demand{At: 200, InUse: 4}, 0, 101, []energy.Demand{{At: 200, InUse: 4}}},
		{energy.Demand{At: 300, InUse: 3}, 200, 0, []energy.Demand{{At: 200, InUse: 4}, {At: 300, InUse: 3}}},
	} {
		if err := s.AddDemand(t.Context(), job.Lease{}, step.add, step.keep); err != nil {
			t.Fatal(err)
		}
		got, err := s.Demand(t.Context(), step.from)
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(step.want, got); d != "" {
			t.Errorf("after %+v (-want +got):\n%s", step.add, d)
		}
	}
}

// testPowerInTurn makes workers, spread over the stores, count in the records of the same hosts:
// operators, each with the hosts in a different order, and a controller with its lease that changes
// all hosts at once. No count may be lost.
func testPowerInTurn(t *testing.T, subjects ...Subject) {
	lease, held := take(t, offered[leases](t, subjects[0]), time.Hour)
	if !held {
		t.Fatal("the lease is not free")
	}
	hosts := []string{"a", "b", "c"}
	count := func(s power, lease job.Lease, named ...string) {
		err := s.ChangePower(t.Context(), lease, named, func(stored map[string]energy.Record) (entries []energy.Entry, err error) {
			for _, host := range named {
				r := stored[host]
				r.Number++
				stored[host] = r
				entries = append(entries, energy.Entry{Host: host, At: span.Instant(r.Number)})
			}
			return entries, nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	for worker := range workers {
		s := offered[power](t, subjects[worker%len(subjects)])
		wg.Go(func() {
			for round := range rounds {
				count(s, job.Lease{}, hosts[(worker+round)%3])
				if worker == 0 {
					count(s, lease, hosts...)
				}
				if err := s.ChangeEnergySettings(t.Context(), job.Lease{}, func(e *energy.Settings) ([]energy.Entry, error) {
					e.FailedBoots++
					return nil, nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s := offered[power](t, subjects[0])
	records, err := s.PowerRecords(t.Context())
	if settings, settingsErr := s.EnergySettings(t.Context()); settings.FailedBoots != workers*rounds || err != nil || settingsErr != nil {
		t.Fatalf("%d changes count %d: %v, %v", workers*rounds, settings.FailedBoots, err, settingsErr)
	}
	sum := int64(0)
	for _, host := range hosts {
		sum += records[host].Number
		entries, err := s.Audit(t.Context(), host, 0, 0)
		if int64(len(entries)) != records[host].Number || err != nil {
			t.Errorf("%s was changed %d times and the audit tells of %d: %v", host, records[host].Number, len(entries), err)
		}
		for i, e := range entries {
			if e.At != span.Instant(len(entries)-i) {
				t.Errorf("%s: entry %d from the end tells of change %d", host, i, e.At)
			}
		}
	}
	if sum != workers*rounds+3*rounds {
		t.Errorf("%d changes count %d", workers*rounds+3*rounds, sum)
	}
}

func anyRecord(host string) *rapid.Generator[energy.Record] {
	return rapid.Custom(func(t *rapid.T) energy.Record {
		r := energy.Record{
			Host: host, Phase: rapid.SampledFrom([]energy.Phase{energy.Awake, energy.Draining, energy.Failed}).Draw(t, "phase"), Since: anyInstant().Draw(t, "since"),
			Reason: rapid.String().Draw(t, "reason"), Target: rapid.SampledFrom(energy.States).Draw(t, "target"), Number: rapid.Int64().Draw(t, "number"),
			Boots: rapid.SliceOfN(rapid.Int64(), 0, 3).Draw(t, "boots"), Switches: rapid.SliceOfN(anyInstant(), 0, 3).Draw(t, "switches"),
			Hold: rapid.Ptr(anyHold(), true).Draw(t, "hold"),
		}
		if rapid.Bool().Draw(t, "ordered") {
			r.Order = &energy.Order{ID: name().Draw(t, "order"), Host: host, Deadline: anyInstant().Draw(t, "deadline"), Hard: rapid.Bool().Draw(t, "hard")}
		}
		return r
	})
}

func anyHold() *rapid.Generator[energy.Hold] {
	return rapid.Custom(func(t *rapid.T) energy.Hold {
		return energy.Hold{
			Action: rapid.SampledFrom([]energy.ManualAction{energy.HoldOff, energy.Test}).Draw(t, "action"), Reason: rapid.String().Draw(t, "why"),
			By: name().Draw(t, "by"), Until: anyInstant().Draw(t, "until"),
		}
	})
}

func anySettings() *rapid.Generator[energy.Settings] {
	return rapid.Custom(func(t *rapid.T) energy.Settings {
		e := energy.Settings{
			Mode: rapid.SampledFrom(energy.Modes).Draw(t, "mode"), FailedBoots: rapid.Int().Draw(t, "failed boots"), PlanID: name().Draw(t, "plan"),
			Aggregates: rapid.MapOfN(name(), rapid.SampledFrom(energy.Modes), 0, 3).Draw(t, "aggregates"),
			Savings:    energy.Savings{Joules: rapid.Float64().Draw(t, "joules"), Unknown: rapid.Int64().Draw(t, "unknown")},
		}
		if rapid.Bool().Draw(t, "stopped") {
			e.Stopped = &energy.Stop{By: name().Draw(t, "by"), Reason: rapid.String().Draw(t, "reason"), At: anyInstant().Draw(t, "at")}
			e.Approved = &energy.Approval{Plan: e.PlanID, By: e.Stopped.By}
		}
		if rapid.Bool().Draw(t, "planned") {
			e.Plan = &energy.Plan{At: anyInstant().Draw(t, "made"), Short: rapid.String().Draw(t, "short")}
			for range rapid.IntRange(0, 3).Draw(t, "hosts") {
				e.Plan.Switches = append(e.Plan.Switches, energy.Switch{Host: name().Draw(t, "host"), To: energy.Off, Urgent: rapid.Bool().Draw(t, "urgent")})
				e.Plan.Kept = append(e.Plan.Kept, energy.Kept{Host: name().Draw(t, "host"), Reason: rapid.String().Draw(t, "reason")})
			}
		}
		return e
	})
}

func anyReport() *rapid.Generator[energy.Report] {
	return rapid.Custom(func(t *rapid.T) energy.Report {
		r := energy.Report{At: anyInstant().Draw(t, "at"), Controller: name().Draw(t, "controller"), Halt: rapid.String().Draw(t, "halt")}
		for range rapid.IntRange(0, 3).Draw(t, "hosts") {
			host := name().Draw(t, "host")
			r.Alarms = append(r.Alarms, energy.Alarm{Kind: energy.AlarmStuck, Host: host, Text: rapid.String().Draw(t, "alarm")})
			r.Agents = append(r.Agents, energy.Agent{Name: name().Draw(t, "agent"), Seen: anyInstant().Draw(t, "seen"), Lost: rapid.Bool().Draw(t, "lost")})
			r.Hosts = append(r.Hosts, energy.Observed{
				Machine: energy.Machine{
					Name: host, Zone: name().Draw(t, "zone"), Aggregates: rapid.SliceOfN(name(), 0, 2).Draw(t, "aggregates"),
					Capacity: anyVector().Draw(t, "capacity"), Hold: rapid.Ptr(anyHold(), true).Draw(t, "hold"),
					Claimed: anyInstant().Draw(t, "claimed"), FlopsPerWatt: rapid.Float64().Draw(t, "efficiency"), States: []energy.State{energy.On, energy.Off},
				},
				Reading:     energy.Reading{Host: host, State: energy.Off, Watts: rapid.Float64().Draw(t, "watts")},
				Explanation: rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "explanation"),
			})
		}
		return r
	})
}
