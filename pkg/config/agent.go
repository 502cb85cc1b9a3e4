// SPDX-License-Identifier: Apache-2.0

package config

import (
	"io"
	"time"

	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
)

// PowerAgent is the configuration of almanac-power. It uses only the logging fields, Host
// and TransportURL of Default.
type PowerAgent struct {
	Default  Default
	Rabbit   amqp.Options
	Agent    Agent
	Ironic   Ironic
	Keystone Keystone

	Origin
}

// Agent is section [agent].
type Agent struct {
	Name                       string // empty: the name of the machine
	MachinesFile, StateFile    string
	AnnounceInterval           time.Duration
	ReadTimeout, SwitchTimeout time.Duration
}

// Ironic is section [ironic].
type Ironic struct {
	openstack.Options
	Enabled bool
}

// LoadPowerAgent reads the configuration of almanac-power. Its parameters and errors are those
// of Load.
func LoadPowerAgent(paths, dirs []string, environment map[string]string) (PowerAgent, error) {
	var cfg PowerAgent
	origin, err := load(agentTable(&cfg), paths, dirs, environment)
	if err != nil {
		return PowerAgent{}, err
	}
	cfg.Origin = origin
	return cfg, nil
}

// SamplePowerAgent writes the sample configuration file of almanac-power, in the layout of Sample.
func SamplePowerAgent(w io.Writer) error {
	var cfg PowerAgent
	return sample(w, "almanac-power", agentTable(&cfg))
}

func agentTable(c *PowerAgent) []section {
	return []section{
		{"DEFAULT", append(logOptions(&c.Default),
			text(&c.Default.Host, "host", "", "Name of this machine. Empty means the hostname."),
			text(&c.Default.TransportURL, "transport_url", "",
				"URL of almanacd's message broker, such as rabbit://user:password@host:5672,user:password@host2:5672/virtual_host.").asSecret(),
		)},
		{"oslo_messaging_rabbit", connectionOptions(&c.Rabbit)},
		{"agent", []option{
			text(&c.Agent.Name, "name", "",
				"Name of this agent and of its queue. It must be unique and must not change. Empty means [DEFAULT] host."),
			text(&c.Agent.MachinesFile, "machines_file", "/etc/almanac/power.yaml",
				"YAML file that describes how to switch each host. A relative path starts at the folder of the first configuration file."),
			text(&c.Agent.StateFile, "state_file", "/var/lib/almanac/power-agent.json",
				"File in which the agent records accepted orders, so that it carries out none twice."),
			duration(&c.Agent.AnnounceInterval, "announce_interval", 10*time.Second, time.Second, time.Minute,
				"How often the agent announces which hosts it can switch. almanacd considers an agent lost after [energy] agent_timeout without an announcement."),
			duration(&c.Agent.ReadTimeout, "read_timeout", 10*time.Second, time.Second, 15*time.Second,
				"Time limit for reading the state of a machine."),
			duration(&c.Agent.SwitchTimeout, "switch_timeout", 5*time.Minute, 10*time.Second, time.Hour,
				"Time limit for switching a machine, in addition to the time that its operating system has for shutting down."),
		}},
		{"ironic", append([]option{
			boolean(&c.Ironic.Enabled, "enabled", false,
				"Use Ironic: the driver ironic switches machines through Ironic's API as the user of [keystone_authtoken], "+
					"and other drivers leave alone the hosts that are Ironic nodes."),
		}, clientOptions(&c.Ironic.Options, "Ironic")...)},
		{"keystone_authtoken", keystoneOptions(&c.Keystone)},
	}
}
