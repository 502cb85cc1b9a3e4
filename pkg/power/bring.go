package power

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
)

// Press is one thing that a driver can tell a machine to do. Each may be told again and
// again.
type Press string

// What a machine can be told.
const (
	Start    Press = "start"    // power on
	Shutdown Press = "shutdown" // let the operating system stop, and power off
	Cut      Press = "cut"      // power off
	Sleep    Press = "sleep"    // go to standby
)

// Buttons are what a driver has of a machine; Bring makes a Machine.Switch of it.
type Buttons interface {
	Read(ctx context.Context) (Reading, error)
	// Press tells the machine; it does not wait until it has obeyed.
	Press(ctx context.Context, p Press) error
}

// Pace is how often Bring looks at a machine and tells it again.
type Pace struct {
	Look  time.Duration // 0 is 5 s
	Again time.Duration // 0 is 30 s; Shutdown is told once
}

// Bring brings a machine to a state, see Machine.Switch. What a machine says is believed
// once it has said it twice in a row, and a machine that does not answer is asked again
// until ctx ends or the patience is over. It needs to answer at first: nothing is done
// with a machine whose state is not known.
func Bring(ctx context.Context, b Buttons, to energy.State, how Manner, pace Pace) error {
	pace.Look, pace.Again = cmp.Or(pace.Look, 5*time.Second), cmp.Or(pace.Again, 30*time.Second)
	w := way{b, pace}
	now, err := w.first(ctx)
	if err != nil {
		return err
	}
	if now == to && (to != energy.On || !how.Hard) {
		return nil
	}
	switch to {
	case energy.Standby:
		return w.press(ctx, Sleep, to)
	case energy.Off:
		return w.stop(ctx, how)
	}
	if now == energy.On { // it hangs
		if err := w.press(ctx, Cut, energy.Off); err != nil {
			return err
		}
	}
	return w.press(ctx, Start, energy.On)
}

// way is a machine on its way.
type way struct {
	Buttons
	pace Pace
}

// first gives the state of a machine that may be touched.
func (w *way) first(ctx context.Context) (energy.State, error) {
	var last Reading
	for range 5 { // one that flaps says the same twice in a row at some time
		r, err := w.Read(ctx)
		switch {
		case err != nil:
			return "", fmt.Errorf("nothing was done: %w", err)
		case r.Untouchable != "":
			return "", fault.New(fault.Denied, "%s", r.Untouchable)
		case r.State != "" && r.State == last.State:
			return r.State, nil
		}
		last = r
		if err := job.Pause(ctx, w.pace.Look); err != nil {
			return "", err
		}
	}
	if last.State == "" {
		return "", fault.New(fault.Unavailable, "nothing was done: the machine does not tell its power state")
	}
	return "", fault.New(fault.Unavailable, "nothing was done: the machine says now that it is on and now that it is not")
}

// stop brings a machine that is not off to that.
func (w *way) stop(ctx context.Context, how Manner) error {
	if how.Patience > 0 || !how.Hard {
		err := w.Press(ctx, Shutdown)
		if err == nil {
			soft, cancel := context.WithTimeout(ctx, how.Patience)
			err = w.until(soft, energy.Off, nil)
			cancel()
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !how.Hard {
			return fmt.Errorf("the operating system has not stopped within %v, and the power must not be cut: %w", how.Patience, err)
		}
	}
	return w.press(ctx, Cut, energy.Off)
}

// press tells the machine until it says that it has the state.
func (w *way) press(ctx context.Context, p Press, to energy.State) error {
	told := func() error { return w.Press(ctx, p) }
	if err := w.until(ctx, to, told); err != nil {
		return fmt.Errorf("told to %s: %w", p, err)
	}
	return nil
}

// until waits until the machine has said twice that it has the state, telling it now and
// again. The error of a machine that cannot do it at all is final.
func (w *way) until(ctx context.Context, to energy.State, tell func() error) error {
	var trouble error
	again := time.NewTimer(0)
	defer again.Stop()
	for said := 0; said < 2; {
		select {
		case <-again.C:
			again.Reset(w.pace.Again)
			if tell == nil || said > 0 {
				break
			}
			err := tell()
			if fault.Is(err, fault.Denied) || fault.Is(err, fault.Invalid) {
				return err
			}
			if err != nil && ctx.Err() == nil {
				trouble = err
			}
		default:
		}
		if err := job.Pause(ctx, w.pace.Look); err != nil {
			return cmp.Or(trouble, err)
		}
		r, err := w.Read(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return cmp.Or(trouble, err)
		case err != nil:
			said, trouble = 0, err
		case r.State != to:
			said, trouble = 0, fault.New(fault.Unavailable, "the machine says that it is still %q", r.State)
		default:
			said++
		}
	}
	return nil
}
