// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/pkg/power/simulated"
)

// configured returns a configuration whose machines file has the text.
func configured(t *testing.T, text string) config.PowerAgent {
	t.Helper()
	cfg, err := config.LoadPowerAgent(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Agent.MachinesFile = filepath.Join(t.TempDir(), "power.yaml")
	if err := os.WriteFile(cfg.Agent.MachinesFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestTheSamplesAreValid(t *testing.T) {
	var sample bytes.Buffer
	if err := config.SamplePowerAgent(&sample); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join("..", "..", "etc", "almanac")
	shipped, err := os.ReadFile(filepath.Join(folder, "almanac-power.conf.sample"))
	if err != nil || !bytes.Equal(shipped, sample.Bytes()) {
		t.Errorf("almanac-power.conf.sample is outdated; run make sample (%v)", err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "power.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	everything := strings.NewReplacer("\n  # - ", "\n  - ", "\n  #   ", "\n    ").Replace(string(text))
	cfg := configured(t, everything)
	if err := os.WriteFile(filepath.Join(filepath.Dir(cfg.Agent.MachinesFile), "bmc-ca.pem"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	entries, err := readMachines(cfg.Agent.MachinesFile, []byte(everything))
	if err != nil || len(entries) != len(drivers) {
		t.Fatalf("etc/almanac/power.yaml has %d entries, want one for each of %d drivers (%v)", len(entries), len(drivers), err)
	}
	for _, e := range entries {
		_, err := e.options.open(e.Host, "", &owner{})
		if err != nil && e.Driver != "redfish" { // its cafile does not exist here
			t.Errorf("%s: %v", e.Driver, err)
		}
	}
}

func TestEachDriverIsDescribed(t *testing.T) {
	page := func(path ...string) string {
		text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	rooms, guide, sample := page("docs", "architecture.md"), page("docs", "energy.md"), page("etc", "almanac", "power.yaml")
	_, ports, _ := strings.Cut(page("docs", "operations.md"), "\n| almanac-power | ")
	ports, _, _ = strings.Cut(strings.ToLower(ports), "\n")
	ports = strings.Join(strings.SplitN(ports, " | ", 4)[:3], " ") // without the cell about TLS
	_, table, _ := strings.Cut(guide, "\n| driver |")
	table, _, _ = strings.Cut(table, "\n\n")
	if rows := strings.Count(table, "\n| `"); rows != len(drivers) {
		t.Errorf("docs/energy.md has %d drivers, want %d", rows, len(drivers))
	}
	if entries := strings.Count(sample, "driver: "); entries != len(drivers) {
		t.Errorf("power.yaml has %d entries, want one for each of %d drivers", entries, len(drivers))
	}
	for _, d := range drivers {
		if !strings.Contains(rooms, "`pkg/power/"+d.name+"`") {
			t.Errorf("docs/architecture.md does not name pkg/power/%s", d.name)
		}
		if !strings.Contains(table, "\n| `"+d.name+"` |") {
			t.Errorf("docs/energy.md has no row for the driver %s", d.name)
		}
		_, entry, _ := strings.Cut(sample, "driver: "+d.name+"\n")
		entry, _, _ = strings.Cut(entry, "- host: ")
		for field := range reflect.TypeOf(d.options()).Elem().Fields() {
			if key := field.Tag.Get("yaml"); !field.Anonymous && !strings.Contains(entry, " "+key+": ") {
				t.Errorf("the entry of power.yaml for the driver %s has no %s", d.name, key)
			}
		}
		if !strings.Contains(ports, d.name) && !slices.Contains([]string{"command", "simulated"}, d.name) { // they connect to nothing themselves
			t.Errorf("the ports of almanac-power in docs/operations.md do not name the driver %s", d.name)
		}
		if d.advice == "" && d.name != "simulated" {
			t.Errorf("the driver %s has no advice", d.name)
		}
	}
}

func TestAMachinesFileThatIsWrongIsRefusedWithItsLine(t *testing.T) {
	for name, tc := range map[string]struct{ text, says string }{
		"empty":                {"", "lists no machines"},
		"no list":              {"machines: 7\n", "power.yaml:1: "},
		"an unknown key":       {"machine: []\n", `unknown field "machine"`},
		"no YAML":              {"machines:\n  - host: [\n", "power.yaml:2: "},
		"an unknown driver":    {"machines:\n  - host: a\n    driver: ipmitool\n", `line 2: there is no driver "ipmitool"`},
		"no driver":            {"machines:\n  - host: a\n", `there is no driver ""`},
		"another driver's key": {"machines:\n  - host: a\n    driver: simulated\n    address: b\n", `power.yaml:4: unknown field "address"`},
		"no host":              {"machines:\n  - driver: simulated\n", "power.yaml:2: a machine needs the key host"},
		"a host twice":         {"machines:\n  - {host: a, driver: simulated}\n  - {host: a, driver: simulated}\n", `power.yaml:3: machine of host "a": host a is listed already`},
		"a host within a list": {"machines:\n  - {host: 'n[1-3]', driver: simulated}\n  - {host: n2, driver: simulated}\n", `power.yaml:3: machine of host "n2": host n2 is listed already`},
		"no list of hosts":     {"machines:\n  - {host: 'n[1-3', driver: simulated}\n", `power.yaml:2: machine of host "n[1-3": "n[1-3" has no "]"`},
		"one BMC for several":  {"machines:\n  - {host: 'n[1-3]', driver: ipmi, address: b, user: c, password_file: d}\n", "address is the same for all of these hosts"},
		"one URL for several":  {"machines:\n  - {host: 'n[1-3]', driver: redfish, url: 'https://b', user: c, password_file: d}\n", "url is the same for all of these hosts"},
		"one node for several": {"machines:\n  - {host: 'n1,n2', driver: ironic, node: b}\n", "node is the same for all of these hosts"},
		"one program for all":  {"machines:\n  - {host: 'n1,n2', driver: command, on: [a, '{host}'], off: [a], status: [a, '{host}']}\n", "off is the same for all of these hosts"},
		"a key twice":          {"machines:\n  - host: a\n    host: b\n    driver: simulated\n", "power.yaml:3: "},
		"no time":              {"machines:\n  - host: a\n    driver: simulated\n    boot: soon\n", "line 4: a time is written"},
		"a password":           {"machines:\n  - host: a\n    driver: ipmi\n    password: hush\n", `unknown field "password"`},
		"an option missing":    {"machines:\n  - host: a\n    driver: ipmi\n    address: b\n    user: c\n", "password_file"},
		"another auth":         {"machines:\n  - {host: a, driver: redfish, auth: digest}\n", "basic or session"},
		"ironic without it":    {"machines:\n  - {host: a, driver: ironic}\n", "[ironic] enabled"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openMachines(configured(t, tc.text))
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if err != nil && strings.Contains(err.Error(), "hush") {
				t.Errorf("the error has the password: %v", err)
			}
		})
	}
}

func TestAnEntryForSeveralHostsOpensAMachineForEach(t *testing.T) {
	m, err := openMachines(configured(t, "machines:\n  - {host: 'n[1-2],m', driver: simulated}\n"+
		"  - {host: 'c[1-2]', driver: command, on: [/bin/true, '{host}'], off: [/bin/true, '{host}'], status: [/bin/echo, '{host}']}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(m.driven)); !slices.Equal(got, []string{"c1", "c2", "m", "n1", "n2"}) {
		t.Errorf("the machines are those of %v", got)
	}
}

// standIn are the options of a machine in memory.
type standIn struct{}

func (standIn) open(string, string, *owner) (power.Machine, error) {
	return simulated.New(simulated.Options{}), nil
}

func (standIn) alike() string { return "" }

func TestADriverLeavesTheHostsOfIronicAloneUnlessItsRowSaysOtherwise(t *testing.T) {
	var switching []string
	for _, d := range append(slices.Clone(drivers), driver{name: "new"}) {
		m := &machines{driven: map[string]power.Driven{}, ironic: &owner{}}
		if err := m.open(entry{driver: d, options: standIn{}}, "a", ""); err != nil {
			t.Fatal(err)
		}
		if _, yields := m.driven["a"].Machine.(*guarded); !yields {
			switching = append(switching, d.name)
		}
	}
	if want := []string{"ironic", "simulated"}; !slices.Equal(switching, want) {
		t.Errorf("the drivers %v switch the hosts of Ironic, want %v", switching, want)
	}
}

func TestAHostOfIronicIsSwitchedByNoOtherDriver(t *testing.T) {
	for name, tc := range map[string]struct {
		owns    bool
		err     error
		on, off bool // whether another driver may switch the host on and off
	}{
		"it is not Ironic's": {false, nil, true, true},
		"it is Ironic's":     {true, nil, false, false},
		"nobody knows":       {false, errors.New("no answer"), true, false},
	} {
		m := simulated.New(simulated.Options{})
		g := &guarded{Machine: m, host: "a", owns: func(context.Context) (bool, error) { return tc.owns, tc.err }}
		for to, may := range map[energy.State]bool{energy.On: tc.on, energy.Off: tc.off} {
			err := g.Switch(t.Context(), to, power.PowerOffMode{})
			if (err == nil) != may || err != nil && !fault.Is(err, fault.Denied) {
				t.Errorf("%s: to %s: %v", name, to, err)
			}
		}
	}
}
