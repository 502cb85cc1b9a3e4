// SPDX-License-Identifier: Apache-2.0

package power

import (
	"context"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// TrialsTopic is the topic on which the process with the energy controller serves Trials: only that
// process can close the host to new instances before.
const TrialsTopic = "almanac.energy"

const (
	testMethod = "test"
	hostMethod = "host"
)

// Trials makes wake tests of hosts.
type Trials interface {
	// Test orders that a host is switched off and on once, as soon as it is empty. by is the id of
	// the user who requests it. Errors are those of the manual order energy.Test.
	Test(ctx context.Context, host, by string) error
	// HostRecord returns the record of a host; it fails with a NotFound fault if there is no such
	// host.
	HostRecord(ctx context.Context, host string) (energy.Record, error)
}

// TrialsEndpoint returns the methods for a server of TrialsTopic.
func TrialsEndpoint(t Trials) oslo.Endpoint {
	return oslo.Endpoint{Version: version, Methods: map[string]oslo.Handler{
		testMethod: func(ctx context.Context, r *oslo.Request) (any, error) {
			var asked trial
			if err := r.Decode(&asked); err != nil {
				return nil, fault.New(fault.Invalid, "%v", err)
			}
			return nil, t.Test(ctx, asked.Host, asked.By)
		},
		hostMethod: func(ctx context.Context, r *oslo.Request) (any, error) {
			var asked trial
			if err := r.Decode(&asked); err != nil {
				return nil, fault.New(fault.Invalid, "%v", err)
			}
			return t.HostRecord(ctx, asked.Host)
		},
	}}
}

// RemoteTrials implements Trials with calls to the process with the energy controller.
type RemoteTrials struct {
	client   *oslo.Client
	exchange string
}

var _ Trials = (*RemoteTrials)(nil)

// NewTrials returns Trials that sends its calls on the exchange.
func NewTrials(client *oslo.Client, exchange string) *RemoteTrials {
	return &RemoteTrials{client, exchange}
}

// Test implements Trials. It fails with an Unavailable fault if no process answers.
func (t *RemoteTrials) Test(ctx context.Context, host, by string) error {
	return fault.While(t.client.Call(ctx, target(t.exchange, TrialsTopic, ""), testMethod, trial{host, by}, nil), "request a wake test of host %s", host)
}

// HostRecord implements Trials.
func (t *RemoteTrials) HostRecord(ctx context.Context, host string) (record energy.Record, err error) {
	if err := t.client.Call(ctx, target(t.exchange, TrialsTopic, ""), hostMethod, trial{Host: host}, &record); err != nil {
		return energy.Record{}, fmt.Errorf("read the record of host %s: %w", host, err)
	}
	return record, nil
}

type trial struct {
	Host string `json:"host"`
	By   string `json:"by,omitempty"`
}

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
	// Run is different at each start of the agent; it distinguishes two agents with the same name.
	Run   string          `json:"run"`
	Hosts []energy.Access `json:"hosts"`
}

type readRequest struct {
	Hosts []string `json:"hosts"`
}

type readReply struct {
	Readings []energy.Reading `json:"readings"`
}
