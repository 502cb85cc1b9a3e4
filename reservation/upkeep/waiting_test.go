// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"context"
	"errors"
	"testing"

	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// patience counts how often it is looked at.
type patience struct {
	room       chan struct{}
	freed, all int
	fail       error
}

func (l *patience) BookFreed(context.Context) error { l.freed++; return l.fail }
func (l *patience) BookAll(context.Context) error   { l.all++; return l.fail }
func (l *patience) Room() <-chan struct{}           { return l.room }

func TestWhatWaitsIsLookedAtWhenThereIsRoomAndFromTimeToTime(t *testing.T) {
	l := &patience{room: make(chan struct{}, 1), fail: errors.New("disk full")}
	for _, j := range upkeep.WaitingJobs(l) {
		freed, all := l.freed, l.all
		if err := j.Step(t.Context()); !errors.Is(err, l.fail) {
			t.Errorf("%s: error %v, want that of the booking, so that it is told and tried again", j.Name, err)
		}
		if woken := j.Wake != nil; woken != (l.freed > freed) || woken == (l.all > all) || j.Every <= 0 {
			t.Errorf("%s: woken by room: %v, looks at what was freed %d times and at all %d times, every %v", j.Name, woken, l.freed-freed, l.all-all, j.Every)
		}
	}
	if l.freed != 1 || l.all != 1 {
		t.Errorf("one step of each looks at what was freed %d times, and at all %d times", l.freed, l.all)
	}
}
