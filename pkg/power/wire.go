package power

import (
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// The topics. The server of an agent on Topic has the agent's name, which is where orders
// go; AgentsTopic is that of fleets, on which agents announce themselves to all of them.
const (
	Topic       = "almanac.power"
	AgentsTopic = "almanac.power.agents"
)

const (
	version = "1.0"

	orderMethod    = "order"
	readMethod     = "read"
	greetMethod    = "greet" // to all agents: announce yourselves
	announceMethod = "announce"
)

func target(exchange, topic, server string) oslo.Target {
	return oslo.Target{Exchange: exchange, Topic: topic, Server: server, Version: version}
}

// announcement says which hosts an agent can switch.
type announcement struct {
	Agent string `json:"agent"`
	// Run is another one each time that the agent is started, so that two of one name
	// are told apart.
	Run   string      `json:"run"`
	Hosts []announced `json:"hosts"`
}

type announced struct {
	Host   string         `json:"host"`
	Driver string         `json:"driver"`
	States []energy.State `json:"states"`
}

type order struct {
	ID       string       `json:"id"`
	Epoch    int64        `json:"epoch"`
	Number   int64        `json:"number"`
	Host     string       `json:"host"`
	State    energy.State `json:"state"`
	Hard     bool         `json:"hard"`
	Patience int64        `json:"patience"` // seconds
	Deadline span.Instant `json:"deadline"` // seconds since 1970
}

func (o *order) order() energy.Order {
	return energy.Order{
		ID: o.ID, Epoch: o.Epoch, Number: o.Number, Host: o.Host, State: o.State,
		Hard: o.Hard, Patience: o.Patience, Deadline: o.Deadline,
	}
}

func orderOf(o energy.Order) order {
	return order{
		ID: o.ID, Epoch: o.Epoch, Number: o.Number, Host: o.Host, State: o.State,
		Hard: o.Hard, Patience: o.Patience, Deadline: o.Deadline,
	}
}

type outcome struct {
	Progress energy.Progress `json:"progress"`
	Reason   string          `json:"reason,omitempty"`
}

type question struct {
	Hosts []string `json:"hosts"`
}

type answer struct {
	Readings []reading `json:"readings"`
}

type reading struct {
	Host        string       `json:"host"`
	State       energy.State `json:"state,omitempty"`
	Watts       float64      `json:"watts,omitempty"`
	Untouchable string       `json:"untouchable,omitempty"`
	Problem     string       `json:"problem,omitempty"`
	At          span.Instant `json:"at"`
}

func (r *reading) reading() energy.Reading {
	return energy.Reading{Host: r.Host, State: r.State, Watts: r.Watts, Untouchable: r.Untouchable, Problem: r.Problem, At: r.At}
}

func readingOf(r energy.Reading) reading {
	return reading{Host: r.Host, State: r.State, Watts: r.Watts, Untouchable: r.Untouchable, Problem: r.Problem, At: r.At}
}
