// SPDX-License-Identifier: Apache-2.0

// Package power sends power orders over AMQP to the agents that switch machines (paper 004, section
// 004.1). An Agent runs where it can reach the machines' BMCs, announces which hosts it can switch,
// and carries out its orders. A Fleet represents all agents in the process of the energy
// controller.
package power

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
)

// Command is a command that a driver can send to a machine. Sending it again does no harm.
type Command string

// The commands.
const (
	Start    Command = "start"    // power on
	Shutdown Command = "shutdown" // ask the operating system to stop and power off
	Cut      Command = "cut"      // power off
	Sleep    Command = "sleep"    // go to standby
)

// Controls is what a driver implements so that Drive can implement Machine.Switch.
type Controls interface {
	Read(ctx context.Context) (Reading, error)
	// Send sends the command. It does not wait until the machine has reached a state.
	Send(ctx context.Context, p Command) error
}

// PollInterval contains the intervals at which Drive reads a machine and repeats a command.
type PollInterval struct {
	Read   time.Duration // 0 is 5 s
	Resend time.Duration // 0 is 30 s; Shutdown is sent once
}

// Drive brings a machine to a state; see Machine.Switch. It relies on a state only when it has read
// it twice in a row, and repeats a failed read until ctx ends or the patience is over. The first
// reads must succeed: Drive does nothing with a machine whose state is unknown.
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

// drive is a machine that Drive is bringing to a state.
type drive struct {
	Controls
	poll PollInterval
}

// first returns the state of a machine, or an error if it must not be switched.
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

// stop switches off a machine that is on or in standby.
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
	return fault.While(w.until(ctx, to, send), "command %s", p)
}

// until repeats send, and waits until the machine has reported the state twice. It returns at once
// if the machine cannot carry out the command at all.
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

// Machine is a machine that a driver can switch. An Agent makes one call of Switch at a time, but
// calls Read also while a Switch is in progress.
type Machine interface {
	// States returns the states to which the machine can be brought: at least On and Off.
	States() []energy.State
	Read(ctx context.Context) (Reading, error)
	// Switch brings the machine to a state, and returns when the machine reports it. It does
	// nothing with a machine that has the state already. An error is a sentence with the
	// reason; a Denied fault means that the machine must not be switched and nothing was
	// done.
	Switch(ctx context.Context, to energy.State, how PowerOffMode) error
}

// Reading is the state of a machine.
type Reading struct {
	State energy.State // "" where it does not report one
	Watts float64      // present draw; 0 means not known
	// Untouchable is the reason, as a sentence, why the machine must not be switched now; "" if it
	// may be.
	Untouchable string
}

// PowerOffMode is how an order switches a machine.
type PowerOffMode struct {
	// Patience is how long the operating system may take to stop by itself. Hard permits cutting
	// the power after that, and power-cycling a machine that is on although it should boot, because
	// it hangs.
	Patience time.Duration
	Hard     bool
}

// mostOutput is how many bytes of a program's output are kept.
const mostOutput = 64 << 10

// path is the PATH of programs.
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// RunProgram runs a program with its arguments, without a shell and without the environment of this
// process, and returns its output. When ctx ends, it kills the program and the processes that the
// program has started. After the end it waits up to ten seconds for the rest of the output, which
// takes long on a busy computer. Errors are Unavailable faults; they name the program without its
// arguments, which may be confidential.
func RunProgram(ctx context.Context, argv []string) (string, error) {
	said, _, err := RunProgramAloud(ctx, argv)
	return said, err
}

// RunProgramAloud does as RunProgram, and also returns what the program wrote to its error output.
func RunProgramAloud(ctx context.Context, argv []string) (said, complaints string, err error) {
	var out, complaint bounded
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Env = []string{"PATH=" + path, "LC_ALL=C", "HOME=/"}
	command.Stdout, command.Stderr = &out, &complaint
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 10 * time.Second
	err = command.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return out.String(), complaint.String(), fault.New(fault.Unavailable, "%s ended with exit status %d%s", argv[0], ended.ExitCode(), lastLine(complaint.String()))
	}
	switch {
	case ctx.Err() != nil:
		return "", complaint.String(), &fault.Error{Kind: fault.Unavailable, Message: argv[0] + " did not end in time", Err: ctx.Err()}
	case errors.Is(err, exec.ErrNotFound):
		return "", complaint.String(), fault.New(fault.Unavailable, "the program %s was not found; install it on the agent's machine", argv[0])
	case err != nil:
		return "", complaint.String(), &fault.Error{Kind: fault.Unavailable, Message: fmt.Sprintf("%s cannot be run: %v", argv[0], err)}
	}
	return out.String(), complaint.String(), nil
}

// lastLine returns the last line of a program's error output.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	line := text[strings.LastIndexByte(text, '\n')+1:]
	return ": " + strings.ToValidUTF8(line[:min(len(line), 300)], "")
}

// bounded is an io.Writer that keeps the first mostOutput bytes.
type bounded struct{ kept []byte }

func (b *bounded) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), mostOutput-len(b.kept))]...)
	return len(p), nil
}

func (b *bounded) String() string { return string(b.kept) }
