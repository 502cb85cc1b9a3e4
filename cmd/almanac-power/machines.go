package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/pkg/power/command"
	"github.com/almanac-cloud/almanac/pkg/power/ipmi"
	"github.com/almanac-cloud/almanac/pkg/power/redfish"
	"github.com/almanac-cloud/almanac/pkg/power/simulated"
)

// machines is the content of the machines file.
type machines struct {
	driven map[string]power.Driven // by host
	ironic *owner                  // nil without Ironic
}

// close ends the sessions with the BMCs.
func (m *machines) close() error {
	var errs []error
	for _, d := range m.driven {
		if held, ok := d.Machine.(io.Closer); ok {
			errs = append(errs, held.Close())
		}
	}
	return errors.Join(errs...)
}

// openMachines reads the machines file of the configuration. It contacts no machine.
func openMachines(cfg config.PowerAgent) (*machines, error) {
	path := cfg.Beside(cfg.Agent.MachinesFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the machines file cannot be read: %v", err)
	}
	m := &machines{driven: map[string]power.Driven{}}
	if cfg.Ironic.Enabled {
		if m.ironic, err = openIronic(cfg); err != nil {
			return nil, err
		}
	}
	entries, err := readMachines(path, text)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		at := fmt.Sprintf("%s:%d: machine of host %q", path, e.line, e.Host)
		if e.Host == "" {
			return nil, fault.New(fault.Invalid, "%s:%d: a machine needs the key host, the name that Nova has for it", path, e.line)
		}
		if _, twice := m.driven[e.Host]; twice {
			return nil, fault.New(fault.Invalid, "%s: the host is listed already", at)
		}
		machine, err := e.driver.open(e.Host, filepath.Dir(path), m.ironic)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		if m.ironic != nil && e.Driver != "ironic" && e.Driver != "simulated" {
			machine = m.ironic.guard(e.Host, machine)
		}
		m.driven[e.Host] = power.Driven{Driver: e.Driver, Machine: machine}
	}
	return m, nil
}

// driver has the values of an entry for its driver.
type driver interface {
	// open returns the machine. Relative paths start at folder.
	open(host, folder string, ironic *owner) (power.Machine, error)
}

// drivers returns an empty entry for each driver.
var drivers = map[string]func() driver{
	"simulated": func() driver { return &simulatedEntry{} },
	"command":   func() driver { return &commandEntry{} },
	"ipmi":      func() driver { return &ipmiEntry{} },
	"redfish":   func() driver { return &redfishEntry{} },
	"ironic":    func() driver { return &ironicEntry{} },
}

// Head has the keys of every entry.
type Head struct {
	Host   string `yaml:"host"`
	Driver string `yaml:"driver"`
}

// entry is one machine of the file.
type entry struct {
	Head
	line   int
	driver driver
}

// UnmarshalYAML reads the keys of the entry's driver, and refuses others.
func (e *entry) UnmarshalYAML(node ast.Node) error {
	e.line = node.GetToken().Position.Line
	if mapping, ok := node.(*ast.MappingNode); ok && len(mapping.Values) > 0 {
		e.line = mapping.Values[0].Key.GetToken().Position.Line
	}
	if err := yaml.NodeToValue(node, &e.Head); err != nil {
		return err
	}
	empty, known := drivers[e.Driver]
	if !known {
		var names []string
		for name := range drivers {
			names = append(names, name)
		}
		slices.Sort(names)
		return fault.New(fault.Invalid, "line %d: %s; drivers are %v", e.line, fault.Unknown("driver", e.Driver, names), names)
	}
	e.driver = empty()
	return yaml.NodeToValue(node, e.driver, yaml.Strict())
}

// readMachines reads the file. Errors are Invalid and name the line.
func readMachines(path string, text []byte) ([]entry, error) {
	var file struct {
		Machines []entry `yaml:"machines"`
	}
	err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict())
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return nil, fmt.Errorf("%s: %w", path, known)
	}
	if wrong, ok := errors.AsType[yaml.Error](err); ok && wrong.GetToken() != nil {
		return nil, fault.New(fault.Invalid, "%s:%d: %s", path, wrong.GetToken().Position.Line, wrong.GetMessage())
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fault.New(fault.Invalid, "%s: %v", path, err)
	}
	if len(file.Machines) == 0 {
		return nil, fault.New(fault.Invalid, "%s: the file lists no machines below the key machines", path)
	}
	return file.Machines, nil
}

// timeSpan is a time such as 30s or 2m, or a number of seconds.
type timeSpan time.Duration

// UnmarshalYAML reads the value.
func (s *timeSpan) UnmarshalYAML(node ast.Node) error {
	at := node.GetToken()
	d, err := config.ParseDuration(at.Value)
	if err != nil || d < 0 {
		return fault.New(fault.Invalid, "line %d: a time is written like 30, 90s or 2m, not %q", at.Position.Line, at.Value)
	}
	*s = timeSpan(d)
	return nil
}

// beside returns the path of a file that the machines file names.
func beside(folder, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

type simulatedEntry struct {
	Head     `yaml:",inline"`
	Boot     timeSpan `yaml:"boot"`
	Shutdown timeSpan `yaml:"shutdown"`
}

func (e *simulatedEntry) open(string, string, *owner) (power.Machine, error) {
	return simulated.New(simulated.Options{Boot: time.Duration(e.Boot), Shutdown: time.Duration(e.Shutdown)}), nil
}

type commandEntry struct {
	Head    `yaml:",inline"`
	On      []string `yaml:"on"`
	Off     []string `yaml:"off"`
	Cut     []string `yaml:"cut"`
	Standby []string `yaml:"standby"`
	Status  []string `yaml:"status"`
	Timeout timeSpan `yaml:"timeout"`
}

func (e *commandEntry) open(host, _ string, _ *owner) (power.Machine, error) {
	m, err := command.New(command.Options{
		Host: host, On: e.On, Off: e.Off, Cut: e.Cut, Standby: e.Standby, Status: e.Status, Timeout: time.Duration(e.Timeout),
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

type ipmiEntry struct {
	Head         `yaml:",inline"`
	Address      string   `yaml:"address"`
	Port         int      `yaml:"port"`
	User         string   `yaml:"user"`
	PasswordFile string   `yaml:"password_file"`
	Cipher       int      `yaml:"cipher_suite"`
	Privilege    string   `yaml:"privilege"`
	Sensor       string   `yaml:"watts_sensor"`
	Timeout      timeSpan `yaml:"timeout"`
}

func (e *ipmiEntry) open(_, folder string, _ *owner) (power.Machine, error) {
	m, err := ipmi.New(ipmi.Options{
		Address: e.Address, Port: e.Port, User: e.User, PasswordFile: beside(folder, e.PasswordFile), Cipher: e.Cipher,
		Privilege: e.Privilege, Sensor: e.Sensor, Timeout: time.Duration(e.Timeout),
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

type redfishEntry struct {
	Head         `yaml:",inline"`
	URL          string   `yaml:"url"`
	User         string   `yaml:"user"`
	PasswordFile string   `yaml:"password_file"`
	Auth         string   `yaml:"auth"`
	CAFile       string   `yaml:"cafile"`
	Insecure     bool     `yaml:"insecure"`
	System       string   `yaml:"system"`
	Timeout      timeSpan `yaml:"timeout"`
}

func (e *redfishEntry) open(_, folder string, _ *owner) (power.Machine, error) {
	if e.Auth != "" && e.Auth != "basic" && e.Auth != "session" {
		return nil, fault.Field("auth", "is basic or session, not %q", e.Auth)
	}
	m, err := redfish.New(redfish.Options{
		URL: e.URL, User: e.User, PasswordFile: beside(folder, e.PasswordFile), Session: e.Auth == "session",
		CAFile: beside(folder, e.CAFile), Insecure: e.Insecure, System: e.System, Timeout: time.Duration(e.Timeout),
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}
