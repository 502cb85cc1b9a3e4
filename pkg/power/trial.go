package power

import (
	"context"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// TrialsTopic is where the process with the energy controller answers those who want to
// try whether a host wakes: only it can close the host to new instances before.
const TrialsTopic = "almanac.energy"

const (
	testMethod = "test"
	hostMethod = "host"
)

// Trials are the wake tests of hosts.
type Trials interface {
	// Test has a host switched off and on once, as soon as nobody is on it. by is who
	// asked. Errors are those of the manual order energy.Test.
	Test(ctx context.Context, host, by string) error
	// HostRecord gives what is remembered of a host; NotFound where it is none.
	HostRecord(ctx context.Context, host string) (energy.Record, error)
}

// TrialsEndpoint gives the methods for a server of TrialsTopic.
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
			record, err := t.HostRecord(ctx, asked.Host)
			return stageOf(record), err
		},
	}}
}

// RemoteTrials ask the process with the energy controller.
type RemoteTrials struct {
	client   *oslo.Client
	exchange string
}

var _ Trials = (*RemoteTrials)(nil)

// NewTrials gives them on exchange.
func NewTrials(client *oslo.Client, exchange string) *RemoteTrials {
	return &RemoteTrials{client, exchange}
}

// Test begins a wake test, see Trials. Unavailable: nobody answered.
func (t *RemoteTrials) Test(ctx context.Context, host, by string) error {
	if err := t.client.Call(ctx, target(t.exchange, TrialsTopic, ""), testMethod, trial{host, by}, nil); err != nil {
		return fmt.Errorf("ask for a wake test of host %s: %w", host, err)
	}
	return nil
}

// HostRecord gives a host's phase and its last wake test; nothing else of its record.
func (t *RemoteTrials) HostRecord(ctx context.Context, host string) (energy.Record, error) {
	var s stage
	if err := t.client.Call(ctx, target(t.exchange, TrialsTopic, ""), hostMethod, trial{Host: host}, &s); err != nil {
		return energy.Record{}, fmt.Errorf("ask how host %s is: %w", host, err)
	}
	return s.record(), nil
}

type trial struct {
	Host string `json:"host"`
	By   string `json:"by,omitempty"`
}

// stage is how far a host is.
type stage struct {
	Host       string       `json:"host"`
	Phase      energy.Phase `json:"phase"`
	Since      span.Instant `json:"since"`
	Reason     string       `json:"reason"`
	Attempt    int          `json:"attempt"`
	Hold       *holding     `json:"hold"`
	Quarantine string       `json:"quarantine"`
	Proof      *proof       `json:"proof"`
}

type holding struct {
	Action energy.Action `json:"action"`
	Reason string        `json:"reason"`
	By     string        `json:"by"`
	At     span.Instant  `json:"at"`
	Until  span.Instant  `json:"until"`
}

type proof struct {
	At      span.Instant `json:"at"`
	Woke    bool         `json:"woke"`
	Seconds int64        `json:"seconds"`
	Reason  string       `json:"reason"`
}

func stageOf(r energy.Record) stage {
	s := stage{Host: r.Host, Phase: r.Phase, Since: r.Since, Reason: r.Reason, Attempt: r.Attempt, Quarantine: r.Quarantine}
	if r.Hold != nil {
		s.Hold = new(holding(*r.Hold))
	}
	if r.Proof != nil {
		s.Proof = new(proof(*r.Proof))
	}
	return s
}

func (s *stage) record() energy.Record {
	r := energy.Record{Host: s.Host, Phase: s.Phase, Since: s.Since, Reason: s.Reason, Attempt: s.Attempt, Quarantine: s.Quarantine}
	if s.Hold != nil {
		r.Hold = new(energy.Hold(*s.Hold))
	}
	if s.Proof != nil {
		r.Proof = new(energy.Proof(*s.Proof))
	}
	return r
}
