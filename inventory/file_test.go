// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// hostsFile writes content to a file and returns its path.
func hostsFile(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hosts.yaml")
	write(t, path, content)
	return path
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func hostsIn(t testing.TB, content string) []inventory.Host {
	t.Helper()
	hosts, err := inventory.FileSource(hostsFile(t, content)).Hosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return hosts
}

func TestAHostsFileSaysEverythingAboutAHost(t *testing.T) {
	got := hostsIn(t, `
hosts:
  - name: node-01
    vcpus: 32
    memory_mb: 131072
    disk_gb: 960
    custom: {CUSTOM_FPGA: 2}
    zone: az1
    aggregates: [fast]
    traits:
      - HW_CPU_X86_AVX2
      - "1"
    properties: {gpu: a100, rack: 3, load: 1e-2, nvme: true, version: "6.10", networks: [b, a], none: []}
    reservable: false
    used: {vcpus: 4, memory_mb: 8192, disk_gb: 40, custom: {CUSTOM_FPGA: 1}}
    instance_count: 1
    power: {state: sleeping, flops_per_watt: 2.1e9, boot_seconds: 180}
  - {name: node-02, vcpus: 1, memory_mb: 1}
`)
	want := []inventory.Host{
		{
			Name:       "node-01",
			Capacity:   resource.Vector{VCPUs: 32, MemoryMB: 131072, DiskGB: 960, Custom: map[string]int64{"CUSTOM_FPGA": 2}},
			Used:       resource.Vector{VCPUs: 4, MemoryMB: 8192, DiskGB: 40, Custom: map[string]int64{"CUSTOM_FPGA": 1}},
			Zone:       "az1",
			Aggregates: []string{"fast"},
			Traits:     []string{"HW_CPU_X86_AVX2", "1"},
			Properties: properties{
				"gpu": inventory.StringValue("a100"), "rack": inventory.NumberValue(3), "load": inventory.NumberValue(0.01),
				"nvme": inventory.BoolValue(true), "version": inventory.StringValue("6.10"),
				"networks": inventory.ListValue([]string{"b", "a"}), "none": inventory.ListValue(nil),
			},
			InstanceCount: 1, Power: inventory.PowerSleeping, BootSeconds: 180, FlopsPerWatt: 2.1e9,
		},
		{
			Name: "node-02", Capacity: resource.Vector{VCPUs: 1, MemoryMB: 1},
			Reservable: true, Power: inventory.PowerOn,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
}

func TestARangeStandsForHostsAlike(t *testing.T) {
	for pattern, want := range map[string]string{
		"node-1":         "node-1",
		"node-[01-03]":   "node-01 node-02 node-03",
		"n[9-11].lab":    "n9.lab n10.lab n11.lab",
		"[098-100]":      "098 099 100",
		"rack1-n[07-07]": "rack1-n07",
		"r[1-2]n[1,3]":   "r1n1 r1n3 r2n1 r2n3",
		"b-1,a-[2-3]":    "b-1 a-2 a-3",
	} {
		hosts := hostsIn(t, `{hosts: [{name: "`+pattern+`", vcpus: 2, memory_mb: 1024, zone: z}]}`)
		var got []string
		for _, h := range hosts {
			got = append(got, h.Name)
			if h.Capacity.VCPUs != 2 || h.Zone != "z" {
				t.Errorf("%s: %s differs from the other hosts: %+v", pattern, h.Name, h)
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pattern, diff)
		}
	}
}

func TestPowerIsSpelledAsYAMLWritersDo(t *testing.T) {
	for state, want := range map[string]inventory.Power{
		"on": "on", "true": "on", "On": "on", `"on"`: "on",
		"off": "sleeping", "false": "sleeping", "sleeping": "sleeping",
		"waking": "waking", "failed": "failed",
	} {
		hosts := hostsIn(t, "hosts: [{name: a, vcpus: 1, memory_mb: 1, power: {state: "+state+"}}]")
		if got := hosts[0].Power; got != want {
			t.Errorf("state %s: got %q, want %q", state, got, want)
		}
	}
}

func TestFlopsPerWattComeFromTheirParts(t *testing.T) {
	for power, want := range map[string]float64{
		"{gflops: 3000, watts_max: 400}": 7.5e9,
		"{flops_per_watt: 2e9}":          2e9,
		"{boot_seconds: 1}":              0,
	} {
		hosts := hostsIn(t, "hosts: [{name: a, vcpus: 1, memory_mb: 1, power: "+power+"}]")
		if got := hosts[0].FlopsPerWatt; got != want {
			t.Errorf("power %s: got %g, want %g", power, got, want)
		}
	}
}

func TestAWrongHostsFileIsRefusedWithItsLine(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		want    string // "line: part of the message"
	}{
		"empty":                   {"", "1: the file is empty"},
		"comments only":           {"# nothing\n", "1: the file is empty"},
		"not YAML":                {"hosts:\n  - name: a\n   vcpus: 1\n", "3: is not YAML"},
		"a list":                  {"- a\n", "1: the file must be a mapping"},
		"two documents":           {"hosts: []\n---\nhosts: []\n", "3: the file holds a second document"},
		"no hosts":                {"# x\n{}\n", "2: hosts is required"},
		"hosts is nothing":        {"hosts:\n", "1: hosts must be a list, not nothing"},
		"a misspelled top key":    {"host: []\n", `1: there is no key "host"; did you mean "hosts"?`},
		"a host that is a word":   {"hosts:\n  - a\n", `2: a host must be a mapping of keys to values, not "a"`},
		"a misspelled key":        {host("memory: 5"), `5: there is no key "memory"; did you mean "memory_mb"?`},
		"a misspelled inner key":  {host("power:\n      boot_secs: 5"), `6: there is no key "boot_secs"; did you mean "boot_seconds"?`},
		"a key given twice":       {host("vcpus: 5"), `5: is not YAML: mapping key "vcpus" already defined`},
		"no name":                 {"hosts:\n  - vcpus: 1\n    memory_mb: 1\n", "2: name is required"},
		"no vcpus":                {"hosts:\n  - name: a\n    memory_mb: 1\n", "2: vcpus is required"},
		"no memory":               {"hosts:\n  - name: a\n    vcpus: 1\n", "2: memory_mb is required"},
		"a number for a name":     {"hosts:\n  - vcpus: 1\n    memory_mb: 1\n    name: 7\n", `4: name must be a string (put it in quotes), not "7"`},
		"no vCPU":                 {"hosts:\n  - name: a\n    memory_mb: 1\n    vcpus: 0\n", "4: vcpus is 0; it must be at least 1"},
		"a negative number":       {host("disk_gb: -5"), "5: disk_gb is -5; it must be at least 0"},
		"a huge number":           {host("disk_gb: 99999999999999999999"), "5: disk_gb is 99999999999999999999; it must be at least 0 and at most"},
		"a fraction":              {host("instance_count: 1.5"), `5: instance_count must be a whole number, not "1.5"`},
		"a quoted number":         {host(`disk_gb: "5"`), `5: disk_gb must be a whole number, not "5"`},
		"nothing":                 {host("zone:"), "5: zone must be a string (put it in quotes), not nothing"},
		"a word for a list":       {host("traits: HW_GPU"), `5: traits must be a list, not "HW_GPU"`},
		"numbers in a list":       {host("traits:\n      - A\n      - 5"), `7: traits must hold strings (put them in quotes), not "5"`},
		"a word for a bool":       {host("reservable: maybe"), `5: reservable must be true or false, not "maybe"`},
		"an anchor":               {host("zone: &z az1"), "5: zone must be a string (put it in quotes), not an anchor"},
		"a merge key":             {host("<<: *z"), "5: a key of a host must be a plain word, not a merge key"},
		"a custom class":          {host("custom: {fpga: 1}"), `5: "fpga" is not a custom resource class`},
		"an unknown state":        {host("power: {state: sleepin}"), `5: there is no power state "sleepin"; did you mean "sleeping"?`},
		"FLOPS per watt twice":    {host("power: {flops_per_watt: 1, gflops: 1, watts_max: 1}"), "5: power has flops_per_watt and its parts"},
		"half the parts":          {host("power: {gflops: 1}"), "5: power needs both gflops and watts_max"},
		"no watts":                {host("power: {gflops: 1, watts_max: 0}"), "5: power.watts_max must be at least 1"},
		"negative efficiency":     {host("power: {flops_per_watt: -1}"), "5: power.flops_per_watt is -1; it must be at least 0"},
		"absurd efficiency":       {host("power: {flops_per_watt: 1e300}"), "5: power.flops_per_watt is 1e300; it must be at least 0 and at most 1e+18"},
		"infinite efficiency":     {host("power: {flops_per_watt: .inf}"), "5: power.flops_per_watt must be a number"},
		"used more than there is": {host("used: {vcpus: 9}"), "5: used is more than the host has"},
		"used what is not there":  {host("used: {custom: {CUSTOM_FPGA: 1}}"), "5: used is more than the host has"},
		"a built-in property":     {host("properties:\n      gpu: a\n      zone: x"), "7: property zone is built in"},
		"a nested property":       {host("properties: {a: {b: c}}"), "5: properties.a must be a number, a string, true or false, or a list of strings, not a mapping"},
		"a property of nothing":   {host("properties: {a: }"), "5: properties.a must be a number"},
		"a property with no name": {host(`properties: {"": 1}`), "5: a property has no name"},
		"two types":               {host("properties: {rack: 3}") + "  - name: b\n    vcpus: 1\n    memory_mb: 1\n    properties: {rack: x}\n", "9: property rack is a string here and a number on line 5"},
		"a name given twice":      {host("zone: z") + "  - name: a\n    vcpus: 1\n    memory_mb: 1\n", "6: there is a host a already, on line 2"},
		"a name within a range":   {host("zone: z") + "  - name: n[1-3]\n    vcpus: 1\n    memory_mb: 1\n  - name: n2\n    vcpus: 1\n    memory_mb: 1\n", "9: there is a host n2 already, on line 6"},
		"a zero before a number":  {host("disk_gb: 010"), "5: disk_gb is 010; write the number without the zero before it, or a string in quotes"},
		"a zero before a ninth":   {host("instance_count: 09"), "5: instance_count is 09; write the number without the zero"},
		"a zero in a property":    {host("properties: {rack: 0017}"), "5: properties.rack is 0017; write the number without the zero"},
		"a zero and a sign":       {host("properties: {rack: -01.5}"), "5: properties.rack is -01.5; write the number without the zero"},
		"a zero in a power":       {host("power: {boot_seconds: 060}"), "5: power.boot_seconds is 060; write the number without the zero"},
		"a number beyond 2^53":    {host("properties: {wwn: 9007199254740993}"), "5: properties.wwn is 9007199254740993, which is too large to be compared exactly; write it in quotes"},
		"a name that is a dot":    {named("."), `2: "." is not a host name`},
		"a name of two dots":      {named(".."), `2: ".." is not a host name`},
		"a name with a space":     {named("a b"), `2: "a b" is not a host name`},
		"an empty name":           {named(""), `2: "" is not a host name`},
		"half a range":            {named("a[1"), `2: "a[1" has no "]"`},
		"a range of letters":      {named("a[a-c]"), `2: "a-c" in "a[a-c]" is not a range`},
		"two ranges side by side": {named("a[1-2][1-2]"), `2: ClusterShell and Slurm read brackets without a character between them`},
		"a range backwards":       {named("a[3-1]"), `2: the range "3-1" of "a[3-1]" runs backwards`},
		"a long range":            {named("a[0-10000]"), `2: the range "0-10000" of "a[0-10000]" is too long`},
		"an endless range":        {named("a[0-99999999999999999999]"), "is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			path := hostsFile(t, tc.content)
			_, err := inventory.FileSource(path).Hosts(t.Context())
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("got %v, want an invalid fault", err)
			}
			if !strings.HasPrefix(err.Error(), path+":") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, want the path and %q", err, tc.want)
			}
		})
	}
}

// host returns a file of one host, a, with one more entry from line 5 on.
func host(more string) string {
	return "hosts:\n  - name: a\n    vcpus: 8\n    memory_mb: 1024\n    " + more + "\n"
}

func named(name string) string {
	return "hosts:\n  - name: \"" + name + "\"\n    vcpus: 1\n    memory_mb: 1\n"
}

func TestAllMistakesAreToldAtOnceUpToTwenty(t *testing.T) {
	path := hostsFile(t, "hosts:\n"+strings.Repeat("  - {name: a b, vcpus: 0, memory_mb: x}\n", 2))
	_, err := inventory.FileSource(path).Hosts(t.Context())
	if got := strings.Count(err.Error(), path); got != 6 {
		t.Errorf("the error lists %d problems, want 6:\n%v", got, err)
	}
	path = hostsFile(t, "hosts:\n"+strings.Repeat("  - a\n", 1000))
	_, err = inventory.FileSource(path).Hosts(t.Context())
	if got := strings.Count(err.Error(), path); got != 20 {
		t.Errorf("the error lists %d problems, want 20", got)
	}
}

func TestAChangedFileIsReadAgainAndAMendedOneToo(t *testing.T) {
	path := hostsFile(t, named("a"))
	file := inventory.FileSource(path)
	read := func() string {
		hosts, err := file.Hosts(t.Context())
		if err != nil {
			return "error"
		}
		return hosts[0].Name
	}
	for _, step := range []struct{ content, want string }{
		{named("a"), "a"}, {named("a"), "a"}, {named("b"), "b"}, {named(""), "error"}, {named("b"), "b"}, {named("c"), "c"},
	} {
		write(t, path, step.content)
		if got := read(); got != step.want {
			t.Errorf("after writing %q: got %s, want %s", step.content, got, step.want)
		}
	}
}

func TestAnswersOfASourceBelongToTheCaller(t *testing.T) {
	file := inventory.FileSource(hostsFile(t, named("a")))
	first, err := file.Hosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first[0].Name = "changed"
	second, err := file.Hosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if second[0].Name != "a" {
		t.Errorf("the second answer names %s", second[0].Name)
	}
}

func TestAMissingFileIsSaidToBeMissing(t *testing.T) {
	_, err := inventory.FileSource(filepath.Join(t.TempDir(), "none.yaml")).Hosts(t.Context())
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestTheSampleIsACluster(t *testing.T) {
	hosts, err := inventory.FileSource("../etc/almanac/hosts.yaml").Hosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := snapshotOf(t, hosts...)
	if s.Len() != 16 {
		t.Errorf("%d hosts", s.Len())
	}
	for _, h := range s.Hosts() {
		if h.Power != inventory.PowerOn || !h.Reservable || h.FlopsPerWatt == 0 || h.BootSeconds == 0 {
			t.Errorf("%s: not on, not in the pool, or without power figures: %+v", h.Name, h)
		}
	}
	// The filters stand in the comments of the sample.
	for filter, want := range map[string]int{
		`["and", [">=", "$memory_mb", 262144], ["in", "$rack", 2, 3]]`: 4,
		`["in", "HW_CPU_X86_AVX512F", "$traits"]`:                      8,
	} {
		f, err := inventory.ParseFilter([]byte(filter), s, false)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, h := range s.Hosts() {
			if f.Matches(h, true) {
				got++
			}
		}
		if got != want {
			t.Errorf("%s matches %d hosts, want %d", filter, got, want)
		}
	}
}
