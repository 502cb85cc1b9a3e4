// SPDX-License-Identifier: Apache-2.0

package topic

import (
	"encoding/json"

	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
)

// claimVersion is the microversion of Placement for allocation requests
// (nova/scheduler/client/report.py).
const claimVersion = "1.36"

// selection returns a host in the form of Nova.
func selection(s dispatch.Selection) (object.Selection, error) {
	one := object.Selection{
		ComputeNode: s.Host.Provider, Host: s.Host.Name, Node: s.Host.Node, Cell: s.Host.Cell, Zone: s.Host.Zone,
	}
	if s.Allocations == nil {
		return one, nil
	}
	request, err := s.AllocationRequest()
	one.AllocationRequest, one.Version = json.RawMessage(request), claimVersion
	return one, err
}
