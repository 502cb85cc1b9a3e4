package config

import (
	"cmp"
	"io"
	"path/filepath"
	"slices"
	"time"
)

// PowerAgent is the configuration of almanac-power. Of Default it has logging, Host and
// TransportURL.
type PowerAgent struct {
	Default  Default
	Rabbit   Rabbit
	Agent    Agent
	Ironic   Ironic
	Keystone Keystone

	Folder string // of the first file that was read; empty without one
}

// Agent is section [agent].
type Agent struct {
	Name                       string // empty: that of the machine
	MachinesFile, StateFile    string
	AnnounceInterval           time.Duration
	ReadTimeout, SwitchTimeout time.Duration
}

// Ironic is section [ironic].
type Ironic struct {
	Client
	Enabled bool
}

// LoadPowerAgent reads the configuration of almanac-power, as Load does.
func LoadPowerAgent(paths, dirs []string, environment map[string]string) (PowerAgent, error) {
	var cfg PowerAgent
	if err := load(agentTable(&cfg), paths, dirs, environment); err != nil {
		return PowerAgent{}, err
	}
	cfg.Folder = cmp.Or(slices.Concat(folders(paths), dirs)...)
	return cfg, nil
}

// Beside is Config.Beside.
func (c PowerAgent) Beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Folder, path)
}

// SamplePowerAgent writes a configuration file of almanac-power, as Sample does.
func SamplePowerAgent(w io.Writer) error {
	var cfg PowerAgent
	return sample(w, "almanac-power", agentTable(&cfg))
}

func agentTable(c *PowerAgent) []section {
	return []section{
		{"DEFAULT", append(logOptions(&c.Default),
			text(&c.Default.Host, "host", "", "Name of this machine. Empty means its own name."),
			text(&c.Default.TransportURL, "transport_url", "",
				"The message broker of almanacd, as rabbit://user:password@host:5672,user:password@host2:5672/virtual_host.").asSecret(),
		)},
		{"oslo_messaging_rabbit", connectionOptions(&c.Rabbit)},
		{"agent", []option{
			text(&c.Agent.Name, "name", "",
				"Name of this agent, and of its queue. Each agent has one of its own, and keeps it. Empty means [DEFAULT] host."),
			text(&c.Agent.MachinesFile, "machines_file", "/etc/almanac/power.yaml",
				"YAML file that says how each host is switched. A relative path begins at the folder of the first configuration file."),
			text(&c.Agent.StateFile, "state_file", "/var/lib/almanac/power-agent.json",
				"Where the agent remembers the orders that it has taken, so that none is carried out twice."),
			duration(&c.Agent.AnnounceInterval, "announce_interval", 10*time.Second, time.Second, time.Minute,
				"How often the agent tells which hosts it can switch. almanacd takes it for lost after 30 seconds without a word."),
			duration(&c.Agent.ReadTimeout, "read_timeout", 10*time.Second, time.Second, 15*time.Second,
				"How long a machine may take to say how it is."),
			duration(&c.Agent.SwitchTimeout, "switch_timeout", 5*time.Minute, 10*time.Second, time.Hour,
				"How long a machine may take to be switched, beside the time that its operating system gets to stop."),
		}},
		{"ironic", append([]option{
			boolean(&c.Ironic.Enabled, "enabled", false,
				"There is an Ironic: machines with the driver ironic are switched by its API, as the user of [keystone_authtoken], "+
					"and no other driver touches a host that Ironic has as a node."),
		}, clientOptions(&c.Ironic.Client, "Ironic")...)},
		{"keystone_authtoken", keystoneOptions(&c.Keystone)},
	}
}
