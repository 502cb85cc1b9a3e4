package power

import (
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// The topics. An agent serves Topic under its own name, to which its orders are sent. All
// fleets serve AgentsTopic, on which agents announce themselves.
const (
	Topic       = "almanac.power"
	AgentsTopic = "almanac.power.agents"
)

const (
	version = "1.0"

	orderMethod    = "order"
	readMethod     = "read"
	discoverMethod = "discover" // asks all agents to announce themselves
	announceMethod = "announce"
)

func target(exchange, topic, server string) oslo.Target {
	return oslo.Target{Exchange: exchange, Topic: topic, Server: server, Version: version}
}

// announcement lists the hosts that an agent can switch.
type announcement struct {
	Agent string `json:"agent"`
	// Run is new at each start of the agent, so that two agents of one name can be told apart.
	Run   string          `json:"run"`
	Hosts []energy.Access `json:"hosts"`
}

type readRequest struct {
	Hosts []string `json:"hosts"`
}

type readReply struct {
	Readings []energy.Reading `json:"readings"`
}
