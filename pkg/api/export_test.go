// SPDX-License-Identifier: Apache-2.0

package api

import "context"

// HoldLine takes a place in the line of a caller for a test.
func (s *Server) HoldLine(ctx context.Context, caller string) error {
	return s.calls.Line.Enter(ctx, caller)
}
