// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"context"
	"fmt"

	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// Pinned states where the server of a best-effort VM may be placed.
type Pinned struct {
	ProjectID string
	Server    string // the VM's server in Nova; empty before it has one
	Node      string // the host that the plan has chosen
	Phase     besteffort.Phase
}

// Pins reads the hosts on which servers may be placed.
type Pins interface {
	// BestEffortPin returns the Pinned of a VM; false means that the VM does not exist.
	BestEffortPin(ctx context.Context, vm string) (Pinned, bool, error)
}

// Pin returns the node on which a VM's new server must be placed; "" means any, which is the case
// for a server that was placed before and moves. refusal is the reason why it must not be placed at
// all, as a sentence for the tenant.
func Pin(ctx context.Context, pins Pins, vm, project string, instances []string) (node, refusal string, err error) {
	p, known, err := pins.BestEffortPin(ctx, vm)
	switch {
	case err != nil:
		return "", "", err
	case !known || p.ProjectID != project || len(instances) != 1:
		return "", fmt.Sprintf("the project has no best-effort work %.64q", vm), nil
	case p.Phase == besteffort.Starting && (p.Server == "" || p.Server == instances[0]):
		return p.Node, "", nil
	case p.Server != instances[0]:
		return "", fmt.Sprintf("best-effort work %.64q does not accept a server now", vm), nil
	}
	return "", "", nil
}
