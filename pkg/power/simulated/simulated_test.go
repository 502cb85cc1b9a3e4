// SPDX-License-Identifier: Apache-2.0

package simulated_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/pkg/power/simulated"
)

func TestAMachineTakesTheTimeThatItIsGiven(t *testing.T) {
	for name, tc := range map[string]struct {
		from     energy.State
		to       energy.State
		how      power.PowerOffMode
		trouble  simulated.Trouble
		switched time.Duration // until Switch returns; negative means that it fails
		up       time.Duration // from the start of Switch until it is up; 0 means never
	}{
		"from off":                     {energy.Off, energy.On, power.PowerOffMode{}, simulated.Trouble{}, 0, 100 * time.Second},
		"from standby":                 {energy.Standby, energy.On, power.PowerOffMode{}, simulated.Trouble{}, 0, 10 * time.Second},
		"to off":                       {energy.On, energy.Off, power.PowerOffMode{Patience: time.Minute}, simulated.Trouble{}, 20 * time.Second, 0},
		"to off in a hurry":            {energy.On, energy.Off, power.PowerOffMode{Patience: 5 * time.Second, Hard: true}, simulated.Trouble{}, 5 * time.Second, 0},
		"to off without patience":      {energy.On, energy.Off, power.PowerOffMode{Patience: 5 * time.Second}, simulated.Trouble{}, -5 * time.Second, time.Nanosecond},
		"it never stops":               {energy.On, energy.Off, power.PowerOffMode{Patience: time.Minute}, simulated.Trouble{NeverStops: true}, -time.Minute, time.Nanosecond},
		"it is cut off":                {energy.On, energy.Off, power.PowerOffMode{Patience: time.Minute, Hard: true}, simulated.Trouble{NeverStops: true}, time.Minute, 0},
		"it never boots":               {energy.Off, energy.On, power.PowerOffMode{}, simulated.Trouble{NeverBoots: true}, 0, 0},
		"it boots late":                {energy.Off, energy.On, power.PowerOffMode{}, simulated.Trouble{Late: time.Hour}, 0, time.Hour + 100*time.Second},
		"its BMC is slow":              {energy.Off, energy.On, power.PowerOffMode{}, simulated.Trouble{Slow: time.Minute}, time.Minute, 160 * time.Second},
		"it is on already":             {energy.On, energy.On, power.PowerOffMode{}, simulated.Trouble{}, 0, time.Nanosecond},
		"its power is taken and given": {energy.On, energy.On, power.PowerOffMode{Hard: true}, simulated.Trouble{}, 0, 100 * time.Second},
		"it is deaf":                   {energy.On, energy.Off, power.PowerOffMode{Patience: time.Minute}, simulated.Trouble{Deaf: true}, -time.Hour, time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := simulated.New(simulated.Options{State: tc.from, Shutdown: 20 * time.Second, Boot: 100 * time.Second})
				m.Trouble(tc.trouble)
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				err := m.Switch(ctx, tc.to, tc.how)
				if took := time.Since(began); err == nil && took != tc.switched || err != nil && took != -tc.switched {
					t.Errorf("got %v after %v, want %v", err, took, tc.switched)
				}
				if err == nil && m.State() != tc.to || err != nil && m.State() != tc.from {
					t.Errorf("the state is %s after %v", m.State(), err)
				}
				time.Sleep(tc.up - time.Since(began) - time.Nanosecond)
				synctest.Wait()
				if before := m.Up(); before && tc.up > time.Nanosecond {
					t.Errorf("the host is up before %v", tc.up)
				}
				time.Sleep(2 * time.Hour)
				if m.Up() != (tc.up > 0) {
					t.Errorf("up in the end: %v", m.Up())
				}
			})
		})
	}
}

func TestWhatAMachineInTroubleTells(t *testing.T) {
	m := simulated.New(simulated.Options{Watts: map[energy.State]float64{energy.On: 200, energy.Off: 8}})
	read := func() string {
		r, err := m.Read(t.Context())
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(fmt.Sprint(r.State, " ", r.Watts, " ", r.Untouchable))
	}
	for want, trouble := range map[string]simulated.Trouble{
		"on 200":                {},
		"off 8":                 {Lies: true},
		"its BMC is dead":       {Broken: "its BMC is dead"},
		"on 200 it is repaired": {Untouchable: "it is repaired"},
	} {
		m.Trouble(trouble)
		if got := read(); got != want {
			t.Errorf("%+v: got %q, want %q", trouble, got, want)
		}
	}
	m.Trouble(simulated.Trouble{Untouchable: "it is repaired"})
	if err := m.Switch(t.Context(), energy.Off, power.PowerOffMode{}); err == nil || m.State() != energy.On {
		t.Error("an untouchable machine was switched off")
	} else if !fault.Is(err, fault.Denied) {
		t.Errorf("got %v, want Denied", err)
	}
	m.Trouble(simulated.Trouble{Flaps: true})
	if one, two := read(), read(); one == two {
		t.Errorf("the machine flaps and reports %q twice", one)
	}
}

func TestTheOperatingSystemIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []bool
		m := simulated.New(simulated.Options{Boot: time.Minute, Changed: func(up bool) { told = append(told, up) }})
		m.PressButton(energy.Off)
		m.PressButton(energy.On)
		time.Sleep(30 * time.Second)
		m.PressButton(energy.Off) // interrupts the boot
		m.PressButton(energy.On)
		time.Sleep(time.Hour)
		synctest.Wait()
		if fmt.Sprint(told) != "[false true]" {
			t.Errorf("the operating system changed %v", told)
		}
	})
}
