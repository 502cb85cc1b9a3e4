// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// crowded returns a model with eight instances on one of three hosts.
func crowded(t *testing.T) *model {
	return newModel(t, box{name: "h1", memory: 16384, guests: crowd("i", 8)}, box{name: "h2", memory: 16384}, box{name: "h3", memory: 16384})
}

func (m *model) wantEnd(status rebalance.Status, reason string, states ...rebalance.State) {
	m.t.Helper()
	if m.run.Status != status || !strings.Contains(m.run.Reason, reason) || len(states) > 0 && !slices.Equal(m.progress(), states) {
		m.t.Fatal(fmt.Sprintf("the run is %s: %s, its moves %+v; want %s: %s, %v", m.run.Status, m.run.Reason, m.run.Progress, status, reason, states))
	}
	if m.run.Over() != (m.run.Ended != 0) {
		m.t.Fatal("it ended at", m.run.Ended)
	}
}

const (
	moved   = rebalance.MoveDone
	skipped = rebalance.MoveSkipped
	failed  = rebalance.MoveFailed
	waiting = rebalance.MoveWaiting
)

func TestARunMakesItsMovesOneAtATimeAndKeepsItsPromise(t *testing.T) {
	m := crowded(t)
	r := m.apply(rebalance.Options{Migrations: 3})
	m.work(100)
	m.wantEnd(rebalance.RunDone, "all moves were made", moved, moved, moved)
	if m.most != 1 || !near(m.run.Yield, r.Plan.After) || !near(minYield(m.boxes), r.Plan.After) {
		t.Errorf("%d at once; the run reports a yield of %v, the yield is %v, the plan promised %v", m.most, m.run.Yield, minYield(m.boxes), r.Plan.After)
	}
}

func TestWhatFailsIsToldAndEndsTheRunWhenItIsTooMuch(t *testing.T) {
	m := crowded(t)
	m.fate = func(string) (int, bool) { return 1, true }
	m.apply(rebalance.Options{Migrations: 4})
	m.work(100)
	m.wantEnd(rebalance.RunFailed, "2 moves have failed", failed, failed, waiting, waiting)
	if why := m.run.Progress[0].Reason; !strings.Contains(why, "failed") || !strings.Contains(why, "h1") {
		t.Errorf("the reason is %q", why)
	}

	m = crowded(t)
	m.meddle = func(call string) error {
		if call == "move" {
			return fault.New(fault.Invalid, "no valid host")
		}
		return nil
	}
	m.apply(rebalance.Options{Migrations: 3})
	m.work(100)
	m.wantEnd(rebalance.RunFailed, "2 moves", failed, failed, waiting)
	if why := m.run.Progress[0].Reason; why != "Nova refuses: no valid host" {
		t.Errorf("the reason is %q", why)
	}
}

func TestAMoveThatTakesTooLongIsGivenUp(t *testing.T) {
	m := crowded(t)
	slow := true
	m.fate = func(string) (int, bool) {
		if slow {
			slow = false
			return 1 << 30, false
		}
		return 1, false
	}
	m.apply(rebalance.Options{Migrations: 2})
	m.work(300)
	m.wantEnd(rebalance.RunDone, "1 of 2 moves were made, 0 were skipped, 1 failed", failed, moved)

	m = crowded(t)
	m.deaf, m.fate = true, func(string) (int, bool) { return 1 << 30, false }
	m.apply(rebalance.Options{Migrations: 2})
	m.work(300)
	m.wantEnd(rebalance.RunFailed, "does not end", failed, waiting)
}

func TestAnInstanceThatHasVanishedOrChangedIsLeftOut(t *testing.T) {
	for name, change := range map[string]func(m *model, b *box, n int){
		"gone":   func(_ *model, b *box, n int) { b.guests = slices.Delete(b.guests, n, n+1) },
		"locked": func(_ *model, b *box, n int) { b.guests[n].Locked = true },
		"busy":   func(_ *model, b *box, n int) { b.guests[n].Task = "rebooting" },
		"stopped": func(_ *model, b *box, n int) {
			b.guests[n].Status = "SHUTOFF"
		},
		"already there": func(m *model, b *box, n int) {
			to := m.box(m.run.Plan.Moves[0].To)
			to.guests = append(to.guests, b.guests[n])
			b.guests = slices.Delete(b.guests, n, n+1)
		},
	} {
		m := crowded(t)
		m.apply(rebalance.Options{Migrations: 2})
		b, n := m.find(m.run.Plan.Moves[0].Instance)
		change(m, b, n)
		m.work(100)
		m.wantEnd(rebalance.RunDone, "", skipped, moved)
		if m.run.Progress[0].Reason == "" {
			t.Errorf("%s: there is no reason", name)
		}
	}
	m := crowded(t) // it vanishes during its move
	m.apply(rebalance.Options{Migrations: 2})
	m.after = func(string) error {
		m.after = nil
		b, n := m.find(m.run.Plan.Moves[0].Instance)
		b.guests = slices.Delete(b.guests, n, n+1)
		return nil
	}
	m.work(100)
	m.wantEnd(rebalance.RunDone, "", skipped, moved)
}

func TestNothingIsMovedOntoAHostThatIsClosedMeanwhile(t *testing.T) {
	for name, shut := range map[string]func(*box){
		"reserved": func(b *box) { b.promised = span.New(now+100, 100) },
		"disabled": func(b *box) { b.disabled = true },
		"asleep":   func(b *box) { b.power = "sleeping" },
		"full":     func(b *box) { b.guests = append(b.guests, server("newcomer", 1, 16000)) },
	} {
		m := newModel(t, box{name: "h1", memory: 16384, guests: crowd("i", 8)}, box{name: "h2", memory: 16384})
		m.apply(rebalance.Options{Migrations: 3})
		m.after = func(string) error { m.after = nil; shut(m.box("h2")); return nil }
		m.work(100)
		m.wantEnd(rebalance.RunDone, "", moved, skipped, skipped) // the move under way has its room
		if why := m.run.Progress[1].Reason; why == "" || name == "full" && !strings.Contains(why, "memory") {
			t.Errorf("%s: the reason for skipping the move is %q", name, why)
		}
	}
}

func TestARunEndsWhereTheRestNoLongerHelps(t *testing.T) {
	m := crowded(t)
	m.apply(rebalance.Options{Migrations: 3})
	first := m.run.Plan.Moves[0].Instance
	for n := range m.box("h1").guests {
		if one := &m.box("h1").guests[n]; one.ID != first {
			one.Status = "SHUTOFF"
		}
	}
	m.work(100)
	m.wantEnd(rebalance.RunDone, "would not raise the smallest yield", waiting, waiting, waiting)
	if m.number != 0 {
		t.Errorf("%d were moved for nothing", m.number)
	}
}

func TestARunThatIsStoppedEndsAfterTheMoveUnderWay(t *testing.T) {
	m := crowded(t)
	m.apply(rebalance.Options{Migrations: 4})
	m.fate = func(string) (int, bool) { return 5, false }
	m.after = func(string) error {
		if m.number == 2 {
			if r, err := m.console().Stop(context.Background(), "bob", "run"); err != nil || r.Status != rebalance.RunStopping {
				t.Errorf("after Stop: got %s, %v", r.Status, err)
			}
		}
		return nil
	}
	m.work(100)
	m.wantEnd(rebalance.RunStopped, "stopped by bob", moved, moved, waiting, waiting)
	if !near(m.run.Yield, m.run.Plan.Moves[1].Yield) {
		t.Errorf("the yield is %v, and after the second move was to be %v", m.run.Yield, m.run.Plan.Moves[1].Yield)
	}
	if r, err := m.console().Stop(t.Context(), "bob", "run"); err != nil || r.Status != rebalance.RunStopped {
		t.Errorf("once more: %s, %v", r.Status, err)
	}
	if _, err := m.console().Stop(t.Context(), "bob", "other"); !fault.Is(err, fault.NotFound) {
		t.Errorf("one that is not there: %v", err)
	}
}

func TestNoMoveIsBegunOnceStopHasAnswered(t *testing.T) {
	for _, moment := range []string{"read", "look"} {
		m := crowded(t)
		m.apply(rebalance.Options{Migrations: 4})
		m.meddle = func(call string) error {
			if call == moment && m.run.Status == rebalance.RunActive {
				if _, err := m.console().Stop(context.Background(), "bob", "run"); err != nil {
					t.Error(err)
				}
			}
			return nil
		}
		m.work(100)
		m.wantEnd(rebalance.RunStopped, "stopped by bob", waiting, waiting, waiting, waiting)
		if m.number != 0 {
			t.Errorf("stopped at a %s, %d moves were begun afterwards", moment, m.number)
		}
	}
}

func TestWhoIsLockedJustBeforeTheMoveStays(t *testing.T) {
	m := crowded(t)
	m.apply(rebalance.Options{Migrations: 1})
	m.meddle = func(call string) error {
		if call == "look" {
			b, n := m.find(m.run.Plan.Moves[0].Instance)
			b.guests[n].Locked = true
		}
		return nil
	}
	m.work(100)
	m.wantEnd(rebalance.RunDone, "", skipped)
	if why := m.run.Progress[0].Reason; m.number != 0 || !strings.Contains(why, "locked") {
		t.Errorf("%d moves, left out since %q", m.number, why)
	}
}

func TestNovaIsToldToGiveUpUntilItHasHeardIt(t *testing.T) {
	m := crowded(t)
	m.fate = func(string) (int, bool) { return 1 << 30, false }
	m.apply(rebalance.Options{Migrations: 1})
	m.meddle = func(call string) error {
		if call == "abort" && m.aborts < 3 {
			return fault.New(fault.Unavailable, "no answer")
		}
		return nil
	}
	m.work(300)
	m.wantEnd(rebalance.RunDone, "1 failed", failed)
	if p := m.run.Progress[0]; m.aborts != 3 || p.Begun != now || p.Aborted != now+60 {
		t.Errorf("Nova was told %d times to abort, and the move is %+v", m.aborts, p)
	}
}

func TestARunEndsWhereNovaNeverTellsWhatHasBecomeOfAMove(t *testing.T) {
	m := crowded(t)
	m.apply(rebalance.Options{Migrations: 2})
	m.meddle = func(call string) error {
		if call == "look" && m.number > 0 {
			return fault.New(fault.Unavailable, "the cell is away")
		}
		return nil
	}
	m.work(300)
	m.wantEnd(rebalance.RunFailed, "unknown", failed, waiting)
	if took := m.now - now; took < 60 || took > 130 || m.aborts == 0 {
		t.Errorf("the run took %d s, and Nova was told %d times to abort", took, m.aborts)
	}
}

func TestAHostThatCannotBecomeEmptyAnyMoreIsLeftAlone(t *testing.T) {
	pinned := server("pinned", 1, 16)
	pinned.Locked = true
	for name, change := range map[string]func(b *box){
		"one has come that cannot be moved": func(b *box) { b.guests = append(b.guests, pinned) },
		"one has come":                      func(b *box) { b.guests = append(b.guests, server("new", 1, 16)) },
		"one is locked":                     func(b *box) { b.guests[3].Locked = true },
		"it is reserved":                    func(b *box) { b.promised = span.New(now+1000, 10) },
	} {
		m := newModel(t, box{name: "h1", memory: 16384, guests: crowd("i", 4), flops: 1}, box{name: "h2", memory: 16384, flops: 1, guests: crowd("j", 1)},
			box{name: "h3", memory: 16384, flops: 2, guests: []inventory.Instance{server("x", 1, 1)}})
		m.apply(rebalance.Options{Consolidate: 2, Floor: 0.1})
		if !slices.Contains(m.run.Plan.Emptied, "h1") || !slices.Contains(m.run.Plan.Emptied, "h2") {
			t.Fatal("the plan empties", m.run.Plan.Emptied)
		}
		change(m.box("h1"))
		m.work(300)
		if m.run.Status != rebalance.RunDone || m.number != 1 || !strings.HasSuffix(m.run.Reason, "; these became empty: h2") {
			t.Errorf("%s: %d moves, %s: %s, %+v", name, m.number, m.run.Status, m.run.Reason, m.run.Progress)
		}
	}
	m := newModel(t, box{name: "h1", memory: 16384, guests: crowd("i", 2), flops: 1}, box{name: "h2", memory: 16384, flops: 2, guests: crowd("j", 1)})
	m.apply(rebalance.Options{Consolidate: 1, Floor: 0.1})
	m.fate = func(string) (int, bool) { return 1, m.number == 1 }
	m.work(100)
	m.wantEnd(rebalance.RunDone, "none of the hosts became empty", failed, skipped)
}

func TestAHostFromWhichOneInstanceCanNoLongerLeaveKeepsTheOthersToo(t *testing.T) {
	for name, close := range map[string]func(b *box){
		"it is down":            func(b *box) { b.down = true },
		"it is disabled":        func(b *box) { b.disabled = true },
		"it is reserved":        func(b *box) { b.promised = span.New(now+1000, 10) },
		"it has no memory left": func(b *box) { b.guests = append(b.guests, server("new", 1, 64)) },
		"it wakes up":           func(b *box) { b.power = inventory.PowerWaking },
	} {
		full := func(id string) []inventory.Instance { return []inventory.Instance{server(id, 1, 64)} } // with room for one more
		m := newModel(t, box{name: "h1", memory: 128, guests: []inventory.Instance{server("a", 1, 64), server("b", 1, 64)}, flops: 1},
			box{name: "h2", memory: 128, guests: full("x"), flops: 2}, box{name: "h3", memory: 128, guests: full("y"), flops: 2})
		r := m.apply(rebalance.Options{Consolidate: 1, Floor: 0.1})
		if len(r.Plan.Moves) != 2 {
			t.Fatal("the plan is", moves(r.Plan))
		}
		close(m.box(r.Plan.Moves[1].To))
		m.work(100)
		if m.number != 0 || m.run.Count(rebalance.MoveSkipped) != 2 {
			t.Errorf("%s: %d moves, %+v", name, m.number, m.run.Progress)
		}
	}
}

func TestInDoubtNothingIsBegun(t *testing.T) {
	m := crowded(t)
	m.apply(rebalance.Options{Migrations: 2})
	m.untrusted = "half of the hosts are missing"
	m.work(50)
	if m.number != 0 || m.run.Over() {
		t.Fatalf("%d moves, the run is %s", m.number, m.run.Status)
	}
	m.untrusted = ""
	m.work(50)
	m.wantEnd(rebalance.RunDone, "", moved, moved)
	m.untrusted = "again"
	if _, err := m.console().Apply(t.Context(), "ann", rebalance.Options{}, ""); !fault.Is(err, fault.Conflict) {
		t.Errorf("a run is begun: %v", err)
	}
}

func TestARunIsBegunOnlyWhereItMakesSense(t *testing.T) {
	m := crowded(t)
	p, err := m.console().Plan(t.Context(), rebalance.Options{Migrations: 2})
	if err != nil {
		t.Fatal(err)
	}
	apply := func(o rebalance.Options, plan string) error {
		_, err := m.console().Apply(t.Context(), "ann", o, plan)
		return err
	}
	if err := apply(rebalance.Options{Migrations: 3}, p.ID); !fault.Is(err, fault.Conflict) || m.run != nil {
		t.Errorf("for another plan: %v", err)
	}
	if err := apply(rebalance.Options{Migrations: -1}, ""); !fault.Is(err, fault.Invalid) || m.run != nil {
		t.Errorf("for nonsense: %v", err)
	}
	if err := apply(rebalance.Options{Migrations: 2}, p.ID); err != nil {
		t.Fatal(err)
	}
	if err := apply(rebalance.Options{Migrations: 2}, ""); !fault.Is(err, fault.Conflict) {
		t.Errorf("while another run exists: %v", err)
	}
	m.work(100)
	if err := apply(rebalance.Options{Migrations: 2, Gain: 1}, ""); !fault.Is(err, fault.Conflict) {
		t.Errorf("for nothing: %v", err)
	}
}

// Each call that fails with errDied is the last one of its process, and the next process
// continues. No instance is lost, moved twice for one move, or left half moved.
func TestAnotherProcessGoesOnWhereverOneDies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, box{name: "h1", memory: 16384, guests: crowd("i", 8)}, box{name: "h2", memory: 4096}, box{name: "h3", memory: 16384})
		var ids []string
		for _, g := range m.boxes[0].guests {
			ids = append(ids, g.ID)
		}
		r := m.apply(rebalance.Options{Migrations: rapid.IntRange(1, 5).Draw(t, "migrations")})
		deaths := rapid.IntRange(0, 6).Draw(t, "deaths")
		die := func(string) error {
			if deaths > 0 && rapid.IntRange(0, 3).Draw(t, "dies") == 0 {
				deaths--
				return errDied
			}
			return nil
		}
		m.meddle, m.after = die, die
		fails := rapid.IntRange(0, 1).Draw(t, "fails")
		m.fate = func(string) (int, bool) {
			fails--
			return rapid.IntRange(1, 4).Draw(t, "looks"), fails == 0
		}
		if rapid.Bool().Draw(t, "is stopped") {
			when := m.now.Add(rapid.Int64Range(0, 20).Draw(t, "stopped after"))
			m.meddle = func(call string) error {
				if m.now >= when && m.run.Status == rebalance.RunActive && call == "look" {
					m.run.Status = rebalance.RunStopping
				}
				return die(call)
			}
		}
		for range 600 {
			m.work(1)
			m.whole(ids)
		}
		if !m.run.Over() || m.most > 1 {
			t.Fatalf("the run is %s, %d were under way at once", m.run.Status, m.most)
		}
		for i, p := range m.run.Progress {
			b, _ := m.find(r.Plan.Moves[i].Instance)
			if on := b.name == r.Plan.Moves[i].To; p.State == moved && !on || p.State == rebalance.MoveUnderway || p.State == rebalance.MoveAborting {
				t.Fatalf("move %d is %s, and the instance on %s", i, p.State, b.name)
			}
			for id, g := range m.migrant {
				if g.status == "running" {
					t.Fatalf("%s is still on its way", id)
				}
			}
		}
		if m.run.Status == rebalance.RunDone && m.run.Count(moved) == len(r.Plan.Moves) && !near(minYield(m.boxes), r.Plan.After) {
			t.Fatalf("%v was promised, %v is", r.Plan.After, minYield(m.boxes))
		}
	})
}
