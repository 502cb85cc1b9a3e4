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

// Ironic itself waits two seconds for a lock, which a power synchronisation or an operator
// may have ([conductor] node_locked_retry_attempts).
const (
	attempts = 6
	pause    = 2 * time.Second
)

// SetPower orders Ironic to bring the node with the UUID or name to a power state, and
// does not wait until it has: Node.Target is what it is brought to meanwhile. A node that
// has the state already stays as it is. timeout is how long Ironic lets it take, in whole
// seconds; 0 is as Ironic is configured.
//
// A node on which Ironic works is asked for again for about half a minute; then it fails
// with a Conflict fault.
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
