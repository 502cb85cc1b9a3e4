// Package cells tells in which cell of Nova each host is: the UUID of the cell by the
// name of the host's nova-compute. Nova's API tells nobody; nova-scheduler has it from
// the API database.
package cells

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// Single is a cloud whose hosts are all in one cell.
type Single struct{ cell string }

// NewSingle gives the cloud with the cell. It fails with an Invalid fault where cell is
// no UUID.
func NewSingle(cell string) (Single, error) {
	if !placing.IsUUID(cell) {
		return Single{}, fault.Field("cell", "must be the UUID of a cell, as `nova-manage cell_v2 list_cells` prints it, not %q", cell)
	}
	return Single{cell}, nil
}

// AnyHost stands for every host that is not named.
const AnyHost = ""

// Cells gives the cell of AnyHost.
func (s Single) Cells(context.Context) (map[string]string, error) {
	return map[string]string{AnyHost: s.cell}, nil
}
