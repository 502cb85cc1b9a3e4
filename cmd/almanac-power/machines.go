// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/pkg/span"
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
	path := cfg.ResolvePath(cfg.Agent.MachinesFile)
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
			return nil, fault.New(fault.Invalid, "%s:%d: a machine needs the key host, its name in Nova", path, e.line)
		}
		hosts, err := inventory.ExpandNames(e.Host)
		if err != nil {
			return nil, fault.New(fault.Invalid, "%s: %v", at, err)
		}
		if key := e.options.alike(); len(hosts) > 1 && key != "" {
			return nil, fault.New(fault.Invalid, "%s: %s is the same for all of these hosts, and each has a machine of its own; {host} in %s stands for the host's name", at, key, key)
		}
		for _, host := range hosts {
			if err := m.open(e, host, filepath.Dir(path)); err != nil {
				return nil, fmt.Errorf("%s: %w", at, err)
			}
		}
	}
	return m, nil
}

// open adds the machine of a host of an entry. folder is that of the machines file.
func (m *machines) open(e entry, host, folder string) error {
	if _, twice := m.driven[host]; twice {
		return fault.New(fault.Invalid, "host %s is listed already", host)
	}
	machine, err := e.options.open(host, folder, m.ironic)
	if err != nil {
		return err
	}
	if m.ironic != nil && !e.driver.switchesIronicsHosts {
		machine = m.ironic.guard(host, machine)
	}
	m.driven[host] = power.Driven{Driver: e.Driver, Machine: machine}
	return nil
}

// Head contains the keys that every entry has.
type Head struct {
	Host   string `yaml:"host"`
	Driver string `yaml:"driver"`
}

// entry is one machine of the file.
type entry struct {
	Head
	line    int
	driver  driver
	options options
}

// UnmarshalYAML reads the keys of the entry's driver, and returns an error for others.
func (e *entry) UnmarshalYAML(node ast.Node) error {
	e.line = node.GetToken().Position.Line
	if mapping, ok := node.(*ast.MappingNode); ok && len(mapping.Values) > 0 {
		e.line = mapping.Values[0].Key.GetToken().Position.Line
	}
	if err := yaml.NodeToValue(node, &e.Head); err != nil {
		return err
	}
	var known bool
	if e.driver, known = driverNamed(e.Driver); !known {
		names := driverNames()
		return fault.New(fault.Invalid, "line %d: %s; drivers are %v", e.line, fault.Unknown("driver", e.Driver, names), names)
	}
	e.options = e.driver.options()
	return yaml.NodeToValue(node, e.options, yaml.Strict())
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

// timeSpan is a duration in the form of span.ParseDuration.
type timeSpan time.Duration

// longest is the longest timeSpan in seconds: a year.
const longest = 366 * 24 * 3600

// UnmarshalYAML reads the value.
func (s *timeSpan) UnmarshalYAML(node ast.Node) error {
	at := node.GetToken()
	if err := s.Set(at.Value); err != nil {
		return fault.New(fault.Invalid, "line %d: %v, not %q", at.Position.Line, err, at.Value)
	}
	return nil
}

// Set reads the value of a flag.
func (s *timeSpan) Set(text string) error {
	seconds, err := span.ParseDuration(text)
	if err != nil || seconds < 0 || seconds > longest {
		return errors.New("a time is written like 30, 90s or 2m")
	}
	*s = timeSpan(time.Duration(seconds) * time.Second)
	return nil
}

func (s *timeSpan) String() string {
	return span.FormatDuration(int64(time.Duration(*s) / time.Second))
}

func (s *timeSpan) Type() string { return "duration" }

// beside returns the path of a file that the machines file names: a relative path starts at folder.
func beside(folder, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}
