// SPDX-License-Identifier: Apache-2.0

package packing

import "context"

// Relaxed returns the largest smallest yield if tasks may be divided among hosts. It equals
// the Bound if hosts are identical, and may be less if they are not.
func (p *Problem) Relaxed(ctx context.Context, solver Solver) (float64, error) {
	if err := p.sized(); err != nil {
		return 0, err
	}
	found, err := newProgram(p).relaxed(ctx, solver)
	return found.Value, err
}
