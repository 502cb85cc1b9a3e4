// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/pkg/power/command"
	"github.com/almanac-cloud/almanac/pkg/power/ipmi"
	ironicpower "github.com/almanac-cloud/almanac/pkg/power/ironic"
	"github.com/almanac-cloud/almanac/pkg/power/redfish"
	"github.com/almanac-cloud/almanac/pkg/power/simulated"
)

// driver is a power driver. docs/energy.md, docs/architecture.md and etc/almanac/power.yaml
// describe the drivers to users; a test compares them with the list drivers.
type driver struct {
	name string
	// options returns empty options, whose keys an entry of the machines file may have.
	options func() options
	// switchesIronicsHosts is true if the driver may switch hosts that are Ironic nodes. All others leave
	// these to Ironic, which would switch them back.
	switchesIronicsHosts bool
	// advice states what to check if a machine cannot be read; empty means nothing.
	advice string
}

// options are the keys of an entry of the machines file.
type options interface {
	// open returns the machine. Relative paths start at folder.
	open(host, folder string, ironic *owner) (power.Machine, error)
	// alike returns the key that makes all hosts of an entry the same machine; "" if each has one of
	// its own, so that the entry may be for several.
	alike() string
}

// hostWord stands for the host's name in the options of an entry.
const hostWord = "{host}"

// of returns an option with the host's name.
func of(option, host string) string { return strings.ReplaceAll(option, hostWord, host) }

// drivers lists all power drivers, as docs/energy.md does.
var drivers = []driver{
	{
		name: "ironic", options: func() options { return &ironicEntry{} }, switchesIronicsHosts: true,
		advice: "look at `openstack baremetal node show`: its power state, maintenance and last error",
	},
	{
		name: "redfish", options: func() options { return &redfishEntry{} },
		advice: "open url/redfish/v1/ from here; check that cafile signed the certificate and that the user has the role Operator",
	},
	{
		name: "ipmi", options: func() options { return &ipmiEntry{} },
		advice: "check that the address of the BMC responds from here (UDP), that IPMI over LAN is enabled, and that the user may control the power",
	},
	{
		name: "command", options: func() options { return &commandEntry{} },
		advice: "run the status program by hand as the user of almanac-power; it must print on, off or standby",
	},
	{name: "simulated", options: func() options { return &simulatedEntry{} }, switchesIronicsHosts: true}, // it has no real machines
}

// driverNamed returns the driver with that name; false if there is none.
func driverNamed(name string) (driver, bool) {
	for _, d := range drivers {
		if d.name == name {
			return d, true
		}
	}
	return driver{}, false
}

// driverNames returns the names of all drivers, in the order of the table.
func driverNames() []string {
	names := make([]string, len(drivers))
	for i, d := range drivers {
		names[i] = d.name
	}
	return names
}

type simulatedEntry struct {
	Head     `yaml:",inline"`
	Boot     timeSpan `yaml:"boot"`
	Shutdown timeSpan `yaml:"shutdown"`
}

func (e *simulatedEntry) open(string, string, *owner) (power.Machine, error) {
	return simulated.New(simulated.Options{Boot: time.Duration(e.Boot), Shutdown: time.Duration(e.Shutdown)}), nil
}

func (e *simulatedEntry) alike() string { return "" }

type commandEntry struct {
	Head    `yaml:",inline"`
	On      []string `yaml:"on"`
	Off     []string `yaml:"off"`
	Cut     []string `yaml:"cut"`
	Standby []string `yaml:"standby"`
	Status  []string `yaml:"status"`
	Timeout timeSpan `yaml:"timeout"`
}

// open returns the machine of an entry with the driver command.
func (e *commandEntry) open(host, _ string, _ *owner) (power.Machine, error) {
	m, err := command.New(command.Options{
		Host: host, On: e.On, Off: e.Off, Cut: e.Cut, Standby: e.Standby, Status: e.Status, Timeout: time.Duration(e.Timeout),
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (e *commandEntry) alike() string {
	for _, program := range []struct {
		key  string
		args []string
	}{{"on", e.On}, {"off", e.Off}, {"cut", e.Cut}, {"standby", e.Standby}, {"status", e.Status}} {
		if len(program.args) > 0 && !strings.Contains(strings.Join(program.args, " "), hostWord) {
			return program.key
		}
	}
	return ""
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

// open returns the machine of an entry with the driver ipmi; folder is that of the machines file.
func (e *ipmiEntry) open(host, folder string, _ *owner) (power.Machine, error) {
	m, err := ipmi.New(ipmi.Options{
		Address: of(e.Address, host), Port: e.Port, User: e.User, PasswordFile: beside(folder, of(e.PasswordFile, host)), Cipher: e.Cipher,
		Privilege: e.Privilege, Sensor: e.Sensor, Timeout: time.Duration(e.Timeout),
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (e *ipmiEntry) alike() string {
	if strings.Contains(e.Address, hostWord) {
		return ""
	}
	return "address"
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

// open returns the machine of an entry with the driver redfish; folder is that of the machines file.
func (e *redfishEntry) open(host, folder string, _ *owner) (power.Machine, error) {
	if e.Auth != "" && e.Auth != "basic" && e.Auth != "session" {
		return nil, fault.Field("auth", "is basic or session, not %q", e.Auth)
	}
	m, err := redfish.New(redfish.Options{
		URL: of(e.URL, host), User: e.User, PasswordFile: beside(folder, of(e.PasswordFile, host)), Session: e.Auth == "session",
		CAFile: beside(folder, e.CAFile), Insecure: e.Insecure, System: of(e.System, host), Timeout: time.Duration(e.Timeout),
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (e *redfishEntry) alike() string {
	if strings.Contains(e.URL, hostWord) || strings.Contains(e.System, hostWord) {
		return ""
	}
	return "url"
}

type ironicEntry struct {
	Head `yaml:",inline"`
	Node string `yaml:"node"`
}

func (e *ironicEntry) open(host, _ string, ironic *owner) (power.Machine, error) {
	if ironic == nil {
		return nil, fault.New(fault.Invalid, "the driver ironic needs [ironic] enabled = true")
	}
	return ironicpower.New(ironic.client, host, of(e.Node, host), nil), nil
}

func (e *ironicEntry) alike() string {
	if e.Node == "" || strings.Contains(e.Node, hostWord) {
		return ""
	}
	return "node"
}
