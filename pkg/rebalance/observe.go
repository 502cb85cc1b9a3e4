// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"time"
)

// readLimit is the longest time for one reading of the cloud.
const readLimit = 5 * time.Minute

// open returns the run that has not ended; nil if there is none.
func (c *Executor) open(ctx context.Context) (*Run, error) {
	last, err := c.Archive.PackingRuns(ctx, 1)
	if err != nil || len(last) == 0 || last[0].Over() {
		return nil, err
	}
	return &last[0], nil
}

// observe reads the cloud, for readLimit at most.
func (c *Executor) observe(ctx context.Context) (Situation, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	return c.Situation(ctx)
}
