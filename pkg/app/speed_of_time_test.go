// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// paced returns the pace at a speed from now on.
func paced(t *testing.T, speed int) Pace {
	t.Helper()
	p, err := NewPace(speed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAMinuteOfRealTimeIsAnHourAtSpeedSixty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for speed, want := range map[int]time.Duration{1: time.Minute, 60: time.Hour, MostSpeed: 10 * time.Hour} {
			p := paced(t, speed)
			c, begun := &clock{pace: p}, p.Now()
			if err := c.set(t.Context(), ahead(0), slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if got := p.Now().Sub(begun); got != want {
				t.Errorf("at speed %d, %v have passed, want %v", speed, got, want)
			}
			if got := c.now(); got != span.At(begun.Add(want)) {
				t.Errorf("at speed %d the clock shows %v, want %v", speed, got, begun.Add(want))
			}
			if ahead := c.ahead(); ahead != 0 {
				t.Errorf("at speed %d the database's clock is %v ahead", speed, ahead)
			}
		}
	})
}

func TestAWaitIsAsLongByTheClockOfItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, speed := range []int{1, 60, MostSpeed} {
			p, begun := paced(t, speed), time.Now()
			from := p.Now()
			if err := p.Wait(t.Context(), time.Hour); err != nil {
				t.Fatal(err)
			}
			if waited := p.Now().Sub(from); waited != time.Hour || time.Since(begun) != time.Hour/time.Duration(speed) {
				t.Errorf("at speed %d, a wait of an hour lasts %v by the clock and %v in real time", speed, waited, time.Since(begun))
			}
		}
	})
	over, stop := context.WithCancel(t.Context())
	stop()
	if err := paced(t, 60).Wait(over, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait whose context has ended returns %v", err)
	}
}

func TestJobsRunAtThePaceButLeaveTheMachineToRequests(t *testing.T) {
	for _, tc := range []struct {
		speed       int
		every, want time.Duration
	}{
		{1, time.Millisecond, time.Millisecond},
		{1, time.Minute, time.Minute},
		{60, time.Minute, time.Second},
		{60, time.Second, leastInterval},
		{60, leastInterval / 2, leastInterval / 2},
		{MostSpeed, time.Minute, 100 * time.Millisecond},
	} {
		if got := paced(t, tc.speed).interval(tc.every); got != tc.want {
			t.Errorf("at speed %d, a job of every %v runs every %v, want %v", tc.speed, tc.every, got, tc.want)
		}
	}
}

func TestTimePassesFasterOnlyWithinReasonAndOnlyInASimulatedCloud(t *testing.T) {
	for _, speed := range []int{-1, 0, MostSpeed + 1} {
		if _, err := NewPace(speed); !fault.Is(err, fault.Invalid) {
			t.Errorf("speed %d: got %v", speed, err)
		}
	}
	if _, err := Open(t.Context(), config.Config{}, paced(t, 2), "test", slog.New(slog.DiscardHandler)); !fault.Is(err, fault.Invalid) {
		t.Errorf("a cloud that is not simulated: got %v", err)
	}
}
