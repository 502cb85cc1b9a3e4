// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"context"
	"encoding/json"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

// The topics whose servers do no work: one answers at once, and one relays to another server.
var (
	emptyTopic = oslo.Target{Exchange: "nova", Topic: "almanac-test-empty", Version: "4.5"}
	relayTopic = oslo.Target{Exchange: "nova", Topic: "almanac-test-relay", Version: "4.5"}
)

// ServeEmpty serves calls of CallEmpty until the test ends.
func (c *Conductor) ServeEmpty() {
	c.t.Helper()
	c.serve(emptyTopic, func(context.Context, *oslo.Request) (any, error) { return []struct{}{}, nil })
}

// CallEmpty sends what SelectDestinations sends to the server of ServeEmpty, which answers at once.
func (c *Conductor) CallEmpty(ctx context.Context, spec RequestSpec, instances []string) error {
	_, err := c.call(ctx, emptyTopic, spec, instances, true, true)
	return err
}

// StandIn serves the topic scheduler until the test ends, and answers at once, each time what the
// scheduler of another Conductor answers once.
func (c *Conductor) StandIn(other *Conductor, spec RequestSpec, instance string) {
	c.t.Helper()
	answer, err := other.call(c.t.Context(), scheduler("", "", "4.5"), spec, []string{instance}, true, true)
	if err != nil {
		c.t.Fatalf("ask for the answer that is given each time: %v", err)
	}
	c.serve(scheduler("", "", "4.5"), func(context.Context, *oslo.Request) (any, error) { return answer, nil })
}

// ServeRelay serves calls of CallRelay until the test ends: each is sent on, as it is, to the
// scheduler of another Conductor.
func (c *Conductor) ServeRelay(to *Conductor) {
	c.t.Helper()
	c.serve(relayTopic, func(ctx context.Context, r *oslo.Request) (any, error) {
		var answer json.RawMessage
		err := to.client.Call(ctx, scheduler("", "", r.Version), r.Method, r.Args, &answer)
		return answer, err
	})
}

// CallRelay sends what SelectDestinations sends to the server of ServeRelay.
func (c *Conductor) CallRelay(ctx context.Context, spec RequestSpec, instances []string) error {
	_, err := c.call(ctx, relayTopic, spec, instances, true, true)
	return err
}

// serve serves select_destinations on a topic until the test ends.
func (c *Conductor) serve(topic oslo.Target, answer oslo.Handler) {
	c.t.Helper()
	server := oslo.NewServer(c.transport, oslo.ServerOptions{
		Exchange: topic.Exchange, Topic: topic.Topic, Name: "standin", NewID: oslotest.NewID,
		Endpoints: []oslo.Endpoint{{Version: topic.Version, Methods: map[string]oslo.Handler{"select_destinations": answer}}},
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(c.t.Context()))
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	c.t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			c.t.Errorf("serve the topic %s: %v", topic.Topic, err)
		}
	})
	select {
	case <-server.Ready():
	case err := <-served:
		c.t.Fatalf("serve the topic %s: %v", topic.Topic, err)
	}
}
