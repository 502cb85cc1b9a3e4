// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
)

func TestProgressTellsTenthsAndMinutesAndTheTimeThatIsLeft(t *testing.T) {
	var told strings.Builder
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	p := &process{stderr: &told, now: func() time.Time { return now }}
	shown := p.newProgress(1000, "steps")
	after := func(pause time.Duration, steps int) {
		now = now.Add(pause)
		shown.add(steps)
	}
	after(10*time.Second, 99)
	after(10*time.Second, 101)
	after(59*time.Second, 10)
	after(time.Second, 10)
	after(10*time.Second, 780)
	want := `20 %: 200 of 1000 steps, about 1m20s left
22 %: 220 of 1000 steps, about 39m0s left
100 %: 1000 of 1000 steps
`
	if told.String() != want {
		t.Errorf("it tells\n%swant\n%s", told.String(), want)
	}
}
