// SPDX-License-Identifier: Apache-2.0

// Package ipmi switches machines by IPMI 2.0 over the network, with the program ipmitool.
package ipmi

import (
	"cmp"
	"context"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
)

// Options are the address and the settings of a BMC.
type Options struct {
	Address string
	Port    int // 0 is 623
	User    string
	// PasswordFile contains the password in its first line. ipmitool reads it, so that no argument
	// and no environment variable contains the password.
	PasswordFile string
	Cipher       int    // cipher suite; 0 is 17, or 3 if the BMC does not know 17
	Privilege    string // ADMINISTRATOR where empty
	// Sensor is the sensor that measures the watts, or "dcmi" for DCMI; empty means that watts are
	// not read.
	Sensor  string
	Program string        // ipmitool where empty
	Timeout time.Duration // of one command; 0 is 20 s
	Poll    power.PollInterval
}

// Machine is a machine behind a BMC. It implements power.Machine.
type Machine struct {
	options Options
	argv    []string
	suite   *atomic.Int64 // cipher suite of the next command
}

var _ power.Machine = (*Machine)(nil)

// New returns a machine. It fails with an Invalid fault if an option is missing.
func New(o Options) (*Machine, error) {
	for _, needed := range []struct{ name, value string }{
		{"address", o.Address}, {"user", o.User}, {"password_file", o.PasswordFile},
	} {
		if needed.value == "" {
			return nil, fault.Field(needed.name, "is required")
		}
	}
	o.Timeout = cmp.Or(o.Timeout, 20*time.Second)
	argv := []string{
		cmp.Or(o.Program, "ipmitool"), "-I", "lanplus", "-H", o.Address, "-p", strconv.Itoa(cmp.Or(o.Port, 623)),
		"-U", o.User, "-f", o.PasswordFile, "-L", cmp.Or(o.Privilege, "ADMINISTRATOR"), "-N", "2", "-R", "2",
	}
	m := &Machine{o, argv, new(atomic.Int64)}
	m.suite.Store(int64(cmp.Or(o.Cipher, suiteSHA256)))
	return m, nil
}

// States returns On and Off, because IPMI has no standby.
func (m *Machine) States() []energy.State { return []energy.State{energy.On, energy.Off} }

// Read reads the power state and, if a sensor is set, the watts; 0 if they cannot be read.
func (m *Machine) Read(ctx context.Context) (power.Reading, error) {
	said, err := m.run(ctx, "chassis", "power", "status")
	if err != nil {
		return power.Reading{}, err
	}
	r := power.Reading{}
	switch strings.TrimSpace(said) {
	case "Chassis Power is on":
		r.State = energy.On
	case "Chassis Power is off":
		r.State = energy.Off
	default:
		return r, fault.New(fault.Unavailable, "the BMC %s sent an unknown answer: %.60q", m.options.Address, said)
	}
	r.Watts = m.watts(ctx)
	return r, nil
}

// watts returns the power that the machine draws, from DCMI or a sensor; 0 if it is unknown.
func (m *Machine) watts(ctx context.Context) float64 {
	switch m.options.Sensor {
	case "":
		return 0
	case "dcmi":
		said, err := m.run(ctx, "dcmi", "power", "reading")
		if err != nil {
			return 0
		}
		return dcmiWatts(said)
	}
	said, err := m.run(ctx, "-c", "sensor", "reading", m.options.Sensor)
	if err != nil {
		return 0
	}
	_, number, _ := strings.Cut(strings.TrimSpace(said), ",")
	return positive(number)
}

// dcmiWatts parses the line "Instantaneous power reading: 180 Watts"; 0 if there is none.
func dcmiWatts(said string) float64 {
	for line := range strings.Lines(said) {
		name, value, _ := strings.Cut(line, ":")
		if words := strings.Fields(value); strings.TrimSpace(name) == "Instantaneous power reading" && len(words) == 2 && words[1] == "Watts" {
			return positive(words[0])
		}
	}
	return 0
}

// positive parses a positive number of watts; it returns 0 for anything else.
func positive(text string) float64 {
	watts, err := strconv.ParseFloat(text, 64)
	if err != nil || !(watts > 0) || math.IsInf(watts, 0) {
		return 0
	}
	return watts
}

// Switch sends commands to the BMC, and waits until it reports the power state.
func (m *Machine) Switch(ctx context.Context, to energy.State, how power.PowerOffMode) error {
	return power.Drive(ctx, m.powerOnly(), to, how, m.options.Poll)
}

// powerOnly returns the machine without its sensor, because Switch does not need the watts.
func (m *Machine) powerOnly() *Machine {
	still := *m
	still.options.Sensor = ""
	return &still
}

var words = map[power.Command]string{power.Start: "on", power.Shutdown: "soft", power.Cut: "off"}

// Send sends one command to the BMC.
func (m *Machine) Send(ctx context.Context, p power.Command) error {
	word, ok := words[p]
	if !ok {
		return fault.New(fault.Invalid, "IPMI cannot %s a machine", p)
	}
	_, err := m.run(ctx, "chassis", "power", word)
	return err
}
