// Package cells returns the cell of each host: the UUID of the cell by the name of the host's
// nova-compute. Nova's API does not contain it; nova-scheduler reads it from the API database.
package cells

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// Single is a cloud whose hosts are all in one cell.
type Single struct{ cell string }

// NewSingle returns a cloud with one cell. It returns an Invalid fault if cell is not a UUID.
func NewSingle(cell string) (Single, error) {
	if !placing.IsUUID(cell) {
		return Single{}, fault.Field("cell", "must be the UUID of a cell, as `nova-manage cell_v2 list_cells` prints it, not %q", cell)
	}
	return Single{cell}, nil
}

// AnyHost is the key for all hosts that are not listed.
const AnyHost = ""

// Cells returns the cell for AnyHost.
func (s Single) Cells(context.Context) (map[string]string, error) {
	return map[string]string{AnyHost: s.cell}, nil
}
