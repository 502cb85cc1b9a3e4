package ironic

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Ironic itself waits two seconds for a lock, which a power synchronization or an operator may
// hold ([conductor] node_locked_retry_attempts).
const (
	attempts = 6
	pause    = 2 * time.Second
)

// SetPower orders Ironic to bring the node with the UUID or name to a power state, and does not
// wait for it: in the meantime Node.Target is that state. A node already in the state stays as
// it is. timeout is how long Ironic lets it take, in whole seconds; 0 is Ironic's default.
//
// SetPower retries for about half a minute on a node that Ironic is working on; then it returns
// a Conflict fault.
func (c *Client) SetPower(ctx context.Context, id string, to Power, timeout time.Duration) error {
	doing := fmt.Sprintf("order %q for node %s", to, id)
	o := nodes.PowerStateOpts{Target: nodes.TargetPowerState(to), Timeout: int((timeout + time.Second - 1) / time.Second)}
	for attempt := 1; ; attempt++ {
		err := c.service.Change(ctx, doing, func(ctx context.Context, g *gophercloud.ServiceClient) error {
			return nodes.ChangePowerState(ctx, g, url.PathEscape(id), o).Err
		})
		if !fault.Is(err, fault.Conflict) || attempt == attempts || c.wait(ctx, pause) != nil {
			return err
		}
	}
}
