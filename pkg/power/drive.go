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

// Command is a command that a driver can send to a machine. Each may be repeated.
type Command string

// The commands.
const (
	Start    Command = "start"    // power on
	Shutdown Command = "shutdown" // ask the operating system to stop and power off
	Cut      Command = "cut"      // power off
	Sleep    Command = "sleep"    // go to standby
)

// Controls are what a driver can do with a machine; Drive implements Machine.Switch with
// them.
type Controls interface {
	Read(ctx context.Context) (Reading, error)
	// Send sends the command, and does not wait until the machine has followed it.
	Send(ctx context.Context, p Command) error
}

// PollInterval has the intervals at which Drive reads a machine and repeats a command.
type PollInterval struct {
	Read   time.Duration // 0 is 5 s
	Resend time.Duration // 0 is 30 s; Shutdown is sent once
}

// Drive brings a machine to a state, see Machine.Switch. It believes a state that it has
// read twice in a row, and repeats a failed read until ctx ends or the patience is over. The
// first reads must succeed: it does nothing with a machine whose state is unknown.
func Drive(ctx context.Context, b Controls, to energy.State, how PowerOffMode, poll PollInterval) error {
	poll.Read, poll.Resend = cmp.Or(poll.Read, 5*time.Second), cmp.Or(poll.Resend, 30*time.Second)
	w := drive{b, poll}
	now, err := w.first(ctx)
	if err != nil {
		return err
	}
	if now == to && (to != energy.On || !how.Hard) {
		return nil
	}
	switch to {
	case energy.Standby:
		return w.command(ctx, Sleep, to)
	case energy.Off:
		return w.stop(ctx, how)
	}
	if now == energy.On { // it hangs
		if err := w.command(ctx, Cut, energy.Off); err != nil {
			return err
		}
	}
	return w.command(ctx, Start, energy.On)
}

// drive is a machine that is being driven to a state.
type drive struct {
	Controls
	poll PollInterval
}

// first returns the state of a machine that may be switched.
func (w *drive) first(ctx context.Context) (energy.State, error) {
	var last Reading
	for range 5 { // a flapping machine has the same state twice in a row at some time
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
		if err := job.Pause(ctx, w.poll.Read); err != nil {
			return "", err
		}
	}
	if last.State == "" {
		return "", fault.New(fault.Unavailable, "nothing was done: the machine does not report its power state")
	}
	return "", fault.New(fault.Unavailable, "nothing was done: the machine reports another power state at each read")
}

// stop brings a machine that is on or in standby to off.
func (w *drive) stop(ctx context.Context, how PowerOffMode) error {
	if how.Patience > 0 || !how.Hard {
		err := w.Send(ctx, Shutdown)
		if err == nil {
			soft, cancel := context.WithTimeout(ctx, how.Patience)
			err = w.until(soft, energy.Off, nil)
			cancel()
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !how.Hard {
			return fmt.Errorf("the operating system has not stopped within %v, and the order does not allow to cut the power: %w", how.Patience, err)
		}
	}
	return w.command(ctx, Cut, energy.Off)
}

// command repeats the command until the machine reports the state.
func (w *drive) command(ctx context.Context, p Command, to energy.State) error {
	send := func() error { return w.Send(ctx, p) }
	if err := w.until(ctx, to, send); err != nil {
		return fmt.Errorf("command %s: %w", p, err)
	}
	return nil
}

// until waits until the machine has reported the state twice, and repeats send. It returns
// at once where the machine cannot follow the command at all.
func (w *drive) until(ctx context.Context, to energy.State, send func() error) error {
	var trouble error
	again := time.NewTimer(0)
	defer again.Stop()
	for said := 0; said < 2; {
		select {
		case <-again.C:
			again.Reset(w.poll.Resend)
			if send == nil || said > 0 {
				break
			}
			err := send()
			if fault.Is(err, fault.Denied) || fault.Is(err, fault.Invalid) {
				return err
			}
			if err != nil && ctx.Err() == nil {
				trouble = err
			}
		default:
		}
		if err := job.Pause(ctx, w.poll.Read); err != nil {
			return cmp.Or(trouble, err)
		}
		r, err := w.Read(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return cmp.Or(trouble, err)
		case err != nil:
			said, trouble = 0, err
		case r.State != to:
			said, trouble = 0, fault.New(fault.Unavailable, "the machine still reports %q", r.State)
		default:
			said++
		}
	}
	return nil
}
