// Package ipmi switches machines by IPMI 2.0 over the network, with the program ipmitool.
package ipmi

import (
	"cmp"
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
)

// Options are how a BMC is reached.
type Options struct {
	Address string
	Port    int // 0 is 623
	User    string
	// PasswordFile has the password in its first line. ipmitool reads it itself, so that
	// the password is in no argument and no environment.
	PasswordFile string
	Cipher       int    // cipher suite; 0 lets ipmitool choose
	Privilege    string // ADMINISTRATOR where empty
	// Sensor names the sensor that reads the watts; "dcmi" asks by DCMI; empty: nobody asks.
	Sensor  string
	Program string        // ipmitool where empty
	Timeout time.Duration // of one question; 0 is 20 s
	Pace    power.Pace
}

// Machine is a machine behind a BMC. It implements power.Machine.
type Machine struct {
	options Options
	argv    []string
}

var _ power.Machine = (*Machine)(nil)

// New gives a machine. It fails with an Invalid fault where an option is missing.
func New(o Options) (*Machine, error) {
	for _, needed := range []struct{ name, value string }{
		{"address", o.Address}, {"user", o.User}, {"password_file", o.PasswordFile},
	} {
		if needed.value == "" {
			return nil, fault.Field(needed.name, "is needed")
		}
	}
	o.Timeout = cmp.Or(o.Timeout, 20*time.Second)
	argv := []string{
		cmp.Or(o.Program, "ipmitool"), "-I", "lanplus", "-H", o.Address, "-p", strconv.Itoa(cmp.Or(o.Port, 623)),
		"-U", o.User, "-f", o.PasswordFile, "-L", cmp.Or(o.Privilege, "ADMINISTRATOR"), "-N", "2", "-R", "2",
	}
	if o.Cipher != 0 {
		argv = append(argv, "-C", strconv.Itoa(o.Cipher))
	}
	return &Machine{o, argv}, nil
}

// States are On and Off: IPMI knows no standby.
func (m *Machine) States() []energy.State { return []energy.State{energy.On, energy.Off} }

// Read asks for the power, and for the watts where it is known how. Watts that cannot be
// read are not known.
func (m *Machine) Read(ctx context.Context) (power.Reading, error) {
	said, err := m.ask(ctx, "chassis", "power", "status")
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
		return r, fault.New(fault.Unavailable, "the BMC %s gave an answer that is not understood: %.60q", m.options.Address, said)
	}
	r.Watts = m.watts(ctx)
	return r, nil
}

func (m *Machine) watts(ctx context.Context) float64 {
	switch m.options.Sensor {
	case "":
		return 0
	case "dcmi":
		said, err := m.ask(ctx, "dcmi", "power", "reading")
		if err != nil {
			return 0
		}
		return dcmiWatts(said)
	}
	said, err := m.ask(ctx, "-c", "sensor", "reading", m.options.Sensor)
	if err != nil {
		return 0
	}
	_, number, _ := strings.Cut(strings.TrimSpace(said), ",")
	return positive(number)
}

// dcmiWatts finds the line "Instantaneous power reading: 180 Watts".
func dcmiWatts(said string) float64 {
	for line := range strings.Lines(said) {
		name, value, _ := strings.Cut(line, ":")
		if words := strings.Fields(value); strings.TrimSpace(name) == "Instantaneous power reading" && len(words) == 2 && words[1] == "Watts" {
			return positive(words[0])
		}
	}
	return 0
}

// positive gives a number that can be watts; others are not known.
func positive(text string) float64 {
	watts, err := strconv.ParseFloat(text, 64)
	if err != nil || !(watts > 0) || math.IsInf(watts, 0) {
		return 0
	}
	return watts
}

// Switch tells the BMC, and waits until it says that the power is so.
func (m *Machine) Switch(ctx context.Context, to energy.State, how power.Manner) error {
	return power.Bring(ctx, m.powerOnly(), to, how, m.options.Pace)
}

// powerOnly gives the machine without its watts, which need not be read at every look.
func (m *Machine) powerOnly() *Machine {
	still := *m
	still.options.Sensor = ""
	return &still
}

var words = map[power.Press]string{power.Start: "on", power.Shutdown: "soft", power.Cut: "off"}

// Press gives one command to the BMC.
func (m *Machine) Press(ctx context.Context, p power.Press) error {
	word, ok := words[p]
	if !ok {
		return fault.New(fault.Invalid, "IPMI cannot %s a machine", p)
	}
	_, err := m.ask(ctx, "chassis", "power", word)
	return err
}

// ask runs ipmitool. An option among words goes before the command.
func (m *Machine) ask(ctx context.Context, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, m.options.Timeout)
	defer cancel()
	said, err := power.RunProgram(ctx, append(m.argv[:len(m.argv):len(m.argv)], words...))
	if err != nil {
		return "", fault.New(fault.Unavailable, "the BMC %s cannot be asked: %s", m.options.Address, fault.Of(err).Message)
	}
	return said, nil
}
