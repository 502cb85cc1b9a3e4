// SPDX-License-Identifier: Apache-2.0

// Package powertest contains the tests that every power driver must pass.
package powertest

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
)

// Bench is a machine that is on, behind the driver under test.
type Bench struct {
	Machine power.Machine
	// On reports whether the power is really on.
	On func() bool
	// Orders returns how many orders to change something have reached the machine.
	Orders func() int
	// Ignore makes the operating system ignore the command to stop. Hang makes everything that the driver asks
	// wait for minutes. Touch, unless it is nil, makes the machine one that must not be switched.
	Ignore, Hang, Touch func()
	// Remembers is true if Read returns what another service has seen last.
	Remembers bool
}

// patience is longer than any step takes.
const patience = 2 * time.Minute

// Run tests a driver. Each call of open returns a new bench. The guide's table of drivers must state what it does.
func Run(t *testing.T, driver string, open func(t *testing.T) Bench) {
	t.Run("it does what the guide states", func(t *testing.T) { testGuide(t, driver, open(t)) })
	t.Run("a state that the machine has needs no order", func(t *testing.T) { testSame(t, open(t)) })
	t.Run("a state that the machine does not know is refused", func(t *testing.T) { testUnknown(t, open(t)) })
	t.Run("the power is cut only if the order is hard", func(t *testing.T) { testHard(t, open(t)) })
	t.Run("a machine that must not be switched is left alone", func(t *testing.T) { testUntouchable(t, open(t)) })
	t.Run("a machine that hangs holds nobody up", func(t *testing.T) { testHanging(t, open(t)) })
	t.Run("it can be closed twice", func(t *testing.T) { testClose(t, open(t)) })
}

// testGuide compares the columns "states" and "reports watts" of docs/energy.md with the machine.
func testGuide(t *testing.T, driver string, b Bench) {
	page, err := os.ReadFile("../../../docs/energy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(string(page), "\n| `"+driver+"` | ")
	row, _, _ = strings.Cut(row, "\n")
	cells := strings.Split(strings.TrimSuffix(row, " |"), " | ")
	if len(cells) != 3 {
		t.Fatalf("docs/energy.md has no row for %s: %q", driver, row)
	}
	stated := strings.Split(cells[1], ", ")
	if states := b.Machine.States(); len(states) != len(stated) || slices.ContainsFunc(states, func(s energy.State) bool { return !slices.Contains(stated, string(s)) }) {
		t.Errorf("the states are %v, and docs/energy.md states %v", states, stated)
	}
	r, err := b.Machine.Read(t.Context())
	if err != nil || r.State != energy.On || r.Untouchable != "" {
		t.Fatalf("at first it reads %+v, %v", r, err)
	}
	if reports := r.Watts > 0; reports != (cells[2] != "no") {
		t.Errorf("it reports %g W, and the column of docs/energy.md is %q", r.Watts, cells[2])
	}
}

// bring brings the machine to a state, and fails the test if it has another one then.
func bring(t *testing.T, b Bench, to energy.State, how power.PowerOffMode) {
	t.Helper()
	if err := b.Machine.Switch(t.Context(), to, how); err != nil {
		t.Fatalf("to %s: %v", to, err)
	}
	if r, err := b.Machine.Read(t.Context()); err != nil || r.State != to || b.On() != (to == energy.On) {
		t.Errorf("brought to %s, it reads %+v, %v; on is %v", to, r, err, b.On())
	}
}

func testSame(t *testing.T, b Bench) {
	for _, to := range []energy.State{energy.On, energy.Off, energy.On} {
		bring(t, b, to, power.PowerOffMode{Patience: patience})
		before := b.Orders()
		bring(t, b, to, power.PowerOffMode{Patience: patience})
		if now := b.Orders(); now != before {
			t.Errorf("%d orders were sent to a machine that is %s", now-before, to)
		}
	}
}

func testUnknown(t *testing.T, b Bench) {
	known := b.Machine.States()
	for _, needed := range []energy.State{energy.On, energy.Off} {
		if !slices.Contains(known, needed) {
			t.Errorf("the states are %v, without %s", known, needed)
		}
	}
	for _, state := range energy.States {
		if slices.Contains(known, state) {
			continue
		}
		if err := b.Machine.Switch(t.Context(), state, power.PowerOffMode{}); !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Denied) {
			t.Errorf("to %s: %v", state, err)
		}
		if b.Orders() > 0 || !b.On() {
			t.Errorf("to %s: %d orders were sent, and on is %v", state, b.Orders(), b.On())
		}
	}
}

func testHard(t *testing.T, b Bench) {
	b.Ignore()
	err := b.Machine.Switch(t.Context(), energy.Off, power.PowerOffMode{Patience: time.Second})
	if err == nil || !b.On() {
		t.Fatalf("an operating system that does not stop, softly: %v, on is %v", err, b.On())
	}
	bring(t, b, energy.Off, power.PowerOffMode{Patience: time.Second, Hard: true})
	bring(t, b, energy.On, power.PowerOffMode{})
	before := b.Orders()
	bring(t, b, energy.On, power.PowerOffMode{Hard: true}) // it hangs, and is restarted
	if b.Orders() < before+2 {
		t.Error("the power of a machine that is on and should boot is not cut and given again, although the order is hard")
	}
}

func testUntouchable(t *testing.T, b Bench) {
	if b.Touch == nil {
		t.Skip("the driver has no machines that must not be switched")
	}
	b.Touch()
	if r, err := b.Machine.Read(t.Context()); err != nil || r.Untouchable == "" {
		t.Errorf("it reads %+v, %v", r, err)
	}
	for _, how := range []power.PowerOffMode{{Patience: patience}, {Hard: true}} {
		if err := b.Machine.Switch(t.Context(), energy.Off, how); !fault.Is(err, fault.Denied) || b.Orders() > 0 || !b.On() {
			t.Errorf("%+v: %v, %d orders, on is %v", how, err, b.Orders(), b.On())
		}
	}
}

func testHanging(t *testing.T, b Bench) {
	b.Hang()
	for name, do := range map[string]func(ctx context.Context) error{
		"read": func(ctx context.Context) error { _, err := b.Machine.Read(ctx); return err },
		"switch": func(ctx context.Context) error {
			return b.Machine.Switch(ctx, energy.Off, power.PowerOffMode{Hard: true})
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		began := time.Now()
		if err := do(ctx); err == nil && (name == "switch" || !b.Remembers) {
			t.Errorf("%s succeeds", name)
		}
		cancel()
		if took := time.Since(began); took > patience/4 {
			t.Errorf("%s took %v, and had half a second", name, took)
		}
	}
	if !b.On() {
		t.Error("it was switched off")
	}
}

func testClose(t *testing.T, b Bench) {
	held, is := b.Machine.(io.Closer)
	if !is {
		t.Skip("it holds nothing")
	}
	if _, err := b.Machine.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := held.Close(); err != nil {
			t.Error(err)
		}
	}
}
