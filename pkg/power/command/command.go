// SPDX-License-Identifier: Apache-2.0

// Package command switches machines with programs of the site's own, as Slurm does with
// ResumeProgram and SuspendProgram.
package command

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
)

// Options are the programs, each a path and its arguments. {host} in an argument stands for the
// name of the host. No shell is involved. A program has succeeded when it ends with exit status 0;
// the machine may reach its state later.
type Options struct {
	Host string
	On   []string
	Off  []string // asks the operating system to stop
	// Cut is the program that cuts the power; empty if that is not possible.
	Cut []string
	// Standby is the program that brings the machine to standby; empty if it has no standby.
	Standby []string
	// Status is a program that prints on, off or standby, and after a space the watts if they are
	// known.
	Status  []string
	Timeout time.Duration // of one program; 0 is 30 s
	Poll    power.PollInterval
}

// Machine is a machine that programs switch. It implements power.Machine.
type Machine struct {
	options  Options
	programs map[power.Command][]string
}

var _ power.Machine = (*Machine)(nil)

// New returns a machine. It fails with an Invalid fault if a program is missing.
func New(o Options) (*Machine, error) {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	for _, needed := range []struct {
		name string
		argv []string
	}{{"on", o.On}, {"off", o.Off}, {"status", o.Status}} {
		if len(needed.argv) == 0 {
			return nil, fault.Field(needed.name, "is required: the program and its arguments")
		}
	}
	for _, argv := range [][]string{o.On, o.Off, o.Cut, o.Standby, o.Status} {
		if len(argv) > 0 && !strings.HasPrefix(argv[0], "/") {
			return nil, fault.New(fault.Invalid, "the program %q must be an absolute path", argv[0])
		}
	}
	return &Machine{o, map[power.Command][]string{
		power.Start: o.On, power.Shutdown: o.Off, power.Cut: o.Cut, power.Sleep: o.Standby,
	}}, nil
}

// States returns On and Off, and Standby if there is a program for it.
func (m *Machine) States() []energy.State {
	if len(m.options.Standby) == 0 {
		return []energy.State{energy.On, energy.Off}
	}
	return energy.States
}

// Read runs the status program.
func (m *Machine) Read(ctx context.Context) (power.Reading, error) {
	said, err := m.run(ctx, m.options.Status)
	if err != nil {
		return power.Reading{}, err
	}
	return status(said)
}

// status parses the output of a status program.
func status(said string) (power.Reading, error) {
	words := strings.Fields(said)
	wrong := fault.New(fault.Unavailable, "the status program printed %.60q, not on, off or standby, with the watts where they are known", said)
	if len(words) < 1 || len(words) > 2 {
		return power.Reading{}, wrong
	}
	r := power.Reading{State: energy.State(words[0])}
	if r.State != energy.On && r.State != energy.Off && r.State != energy.Standby {
		return power.Reading{}, wrong
	}
	if len(words) == 2 {
		watts, err := strconv.ParseFloat(words[1], 64)
		if err != nil || !(watts >= 0 && watts < 1e6) {
			return power.Reading{}, wrong
		}
		r.Watts = watts
	}
	return r, nil
}

// Switch runs the programs until the status program reports the state.
func (m *Machine) Switch(ctx context.Context, to energy.State, how power.PowerOffMode) error {
	return power.Drive(ctx, m, to, how, m.options.Poll)
}

// Send runs one program.
func (m *Machine) Send(ctx context.Context, p power.Command) error {
	if len(m.programs[p]) == 0 {
		return fault.New(fault.Invalid, "there is no program to %s host %s", p, m.options.Host)
	}
	_, err := m.run(ctx, m.programs[p])
	return err
}

// run runs a program of the configuration, with the host's name in place of {host}, and returns its
// output.
func (m *Machine) run(ctx context.Context, argv []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, m.options.Timeout)
	defer cancel()
	full := []string{argv[0]}
	for _, argument := range argv[1:] {
		full = append(full, strings.ReplaceAll(argument, "{host}", m.options.Host))
	}
	return power.RunProgram(ctx, full)
}
