// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/placing"
)

const (
	// Mark is the key in a server's metadata, and the scheduler hint of its boot request, whose
	// value is the id of its VM.
	Mark = placing.BestEffortHint
	// AttemptMark is the key in a server's metadata whose value is the number of the VM's attempt
	// that created the server.
	AttemptMark = Mark + "_attempt"
)

// ServerOf returns the name and the metadata of a VM's server.
func (r *Request) ServerOf(vm *VM) (name string, metadata map[string]string) {
	name = r.Name
	if len(r.VMs) > 1 {
		name = fmt.Sprintf("%.240s-%d", r.Name, vm.Number)
	}
	metadata = maps.Clone(r.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[Mark], metadata[AttemptMark] = vm.ID, strconv.Itoa(vm.Attempt)
	return name, metadata
}
