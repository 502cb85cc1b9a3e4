// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

func TestEveryOptionOfThePowerAgentReachesItsField(t *testing.T) {
	path := write(t, "almanac-power.conf", `
[DEFAULT]
debug = true
log_file = power.log
log_dir = /var/log
use_json = true
host = node1
transport_url = rabbit://u:p@mq//
[agent]
name = agent1
machines_file = machines.yaml
state_file = state.json
announce_interval = 1
read_timeout = 2
switch_timeout = 11
[ironic]
enabled = true
region_name = R
valid_interfaces = admin
endpoint_override = http://ironic
cafile = ca
insecure = true
timeout = 3
`)
	got, err := config.LoadPowerAgent([]string{path}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	preset, err := config.LoadPowerAgent(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := preset
	want.Default.Debug, want.Default.LogFile, want.Default.LogDir, want.Default.UseJSON = true, "power.log", "/var/log", true
	want.Default.Host, want.Default.TransportURL = "node1", "rabbit://u:p@mq//"
	want.Agent = config.Agent{
		Name: "agent1", MachinesFile: "machines.yaml", StateFile: "state.json",
		AnnounceInterval: time.Second, ReadTimeout: 2 * time.Second, SwitchTimeout: 11 * time.Second,
	}
	want.Ironic = config.Ironic{Enabled: true, Options: openstack.Options{
		Region: "R", Interfaces: []string{"admin"}, Override: "http://ironic", CAFile: "ca", Insecure: true, Timeout: 3 * time.Second,
	}}
	want.Folder = filepath.Dir(path)
	if diff := cmp.Diff(want, got, unexported); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	was, is := reflect.ValueOf(preset.Agent), reflect.ValueOf(got.Agent)
	for i := range was.NumField() {
		if was.Field(i).Equal(is.Field(i)) {
			t.Errorf("the text sets no option of Agent.%s to something other than its default", was.Type().Field(i).Name)
		}
	}
}
