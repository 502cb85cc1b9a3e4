// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/oslotest"
)

// emptyTopic is the topic whose server does no work.
var emptyTopic = oslo.Target{Exchange: "nova", Topic: "almanac-test-empty", Version: "4.5"}

// ServeEmpty serves calls of CallEmpty until the test ends.
func (c *Conductor) ServeEmpty() {
	c.t.Helper()
	server := oslo.NewServer(c.transport, oslo.ServerOptions{
		Exchange: emptyTopic.Exchange, Topic: emptyTopic.Topic, Name: "empty", NewID: oslotest.NewID,
		Endpoints: []oslo.Endpoint{{Version: emptyTopic.Version, Methods: map[string]oslo.Handler{
			"select_destinations": func(context.Context, *oslo.Request) (any, error) { return []struct{}{}, nil },
		}}},
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(c.t.Context()))
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	c.t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			c.t.Errorf("serve the topic %s: %v", emptyTopic.Topic, err)
		}
	})
	select {
	case <-server.Ready():
	case err := <-served:
		c.t.Fatalf("serve the topic %s: %v", emptyTopic.Topic, err)
	}
}

// CallEmpty sends what SelectDestinations sends to the server of ServeEmpty, which answers at once.
func (c *Conductor) CallEmpty(ctx context.Context, spec RequestSpec, instances []string) error {
	_, err := c.call(ctx, emptyTopic, spec, instances, true, true)
	return err
}
