package rebalance

import (
	"context"
	"errors"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	leaseName = "packing"
	leaseTTL  = time.Minute
	// tellable is how many seconds after the lease was taken Nova may be told something: a
	// process that was paused, or is slow, tells nothing once another may have the lease, with
	// clocks that differ by the rest of leaseTTL.
	tellable = 45
	// heard is how many seconds after a move was begun Nova has heard of it, or never will.
	heard = int64(leaseTTL / time.Second)
	// mostRead bounds one reading of the cloud. The lease is prolonged meanwhile.
	mostRead = 5 * time.Minute
)

// grip is the lease as this process has it.
type grip struct {
	job.Lease
	until span.Instant // Nova may be told something before
}

// hold takes the lease, or prolongs it.
func (c *Carrier) hold(ctx context.Context) (grip, bool, error) {
	before := c.Now()
	lease, held, err := c.Leases.Take(ctx, leaseName, leaseTTL)
	return grip{lease, before.Add(tellable)}, held, err
}

var errLost = errors.New("another process has taken over")

// read reads the cloud, which may take longer than the lease lasts: it is prolonged meanwhile,
// and afterwards. It fails where another process has taken over.
func (c *Carrier) read(ctx context.Context, g grip) (Situation, grip, error) {
	reading, cancel := context.WithTimeout(ctx, mostRead)
	defer cancel()
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		for job.Pause(reading, leaseTTL/3) == nil {
			if again, held, err := c.hold(reading); err == nil && (!held || again.Lease != g.Lease) {
				cancel()
			}
		}
	}()
	s, err := c.Situation(reading)
	cancel()
	<-kept
	again, held, failed := c.hold(ctx)
	switch {
	case failed != nil:
		return s, g, failed
	case !held || again.Lease != g.Lease:
		return s, g, errLost
	}
	return s, again, err
}

// while tells Nova something as long as this process has the lease for sure.
func (c *Carrier) while(ctx context.Context, g grip, tell func(ctx context.Context) error) error {
	left := g.until - c.Now()
	if left <= 0 {
		return fault.New(fault.Unavailable, "Nova is told nothing, as the lease may be over")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(left)*time.Second)
	defer cancel()
	return tell(ctx)
}
