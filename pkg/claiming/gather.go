// SPDX-License-Identifier: Apache-2.0

package claiming

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

const (
	// sendersAtOnce is the number of transactions that a Gatherer sends at the same time. Placement
	// has a few processes, and transactions that wait for one would grow if they waited here.
	sendersAtOnce = 4
	// gathered is the largest number of consumers in a gathered transaction. Each adds 14 ms to a
	// transaction of 28 ms (docs/performance.md), and all of them wait for the last.
	gathered = 16
)

// Gatherer sends first claims of consumers that wait at the same time to Placement in one
// transaction: Placement writes eight consumers together in half the time of eight transactions. If
// fewer than sendersAtOnce transactions are in progress, a claim waits for nothing.
//
// It implements Placement. The methods but Claim, and claims of consumers that have allocations, go
// to the Placement that it contains. Use NewGatherer to make one.
type Gatherer struct {
	Placement
	together job.Together[struct{}, []placing.Claim]
}

// NewGatherer returns a Gatherer that sends to p.
func NewGatherer(p Placement) *Gatherer {
	g := &Gatherer{Placement: p}
	g.together.AtOnce, g.together.Fits, g.together.Do = sendersAtOnce, fits, g.send
	return g
}

// Claim implements Placement. If Placement refuses a gathered transaction, which refuses the claims
// of all callers, those of each caller are sent alone, so that one without room does not affect the
// others.
func (g *Gatherer) Claim(ctx context.Context, claims []placing.Claim) error {
	if len(claims) > gathered || slices.ContainsFunc(claims, func(c placing.Claim) bool { return c.Generation != nil }) {
		return g.Placement.Claim(ctx, claims)
	}
	err := g.together.Run(ctx, struct{}{}, claims)
	left := &fault.Error{Kind: fault.Unavailable, Message: "Placement has not answered yet", Err: err}
	switch {
	case errors.Is(err, job.ErrNotBegun):
		return fmt.Errorf("%w: %w", placing.ErrUnsent, left)
	case err != nil && err == ctx.Err():
		return left
	}
	return err
}

// fits reports whether a transaction may have more claims: up to gathered consumers, each of them
// once.
func fits(callers [][]placing.Claim, more []placing.Claim) bool {
	all := slices.Concat(callers...)
	return len(all)+len(more) <= gathered && !slices.ContainsFunc(more, func(c placing.Claim) bool {
		return slices.ContainsFunc(all, func(other placing.Claim) bool { return other.Consumer == c.Consumer })
	})
}

// send sends the claims of all callers in one transaction.
func (g *Gatherer) send(ctx context.Context, callers [][]placing.Claim) []error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	err := g.Placement.Claim(ctx, slices.Concat(callers...))
	if len(callers) > 1 && err != nil && !errors.Is(err, placing.ErrUnsent) && Refused(err) {
		return g.sendEach(ctx, callers)
	}
	return slices.Repeat([]error{err}, len(callers))
}

// sendEach sends the claims of each caller in a transaction of its own, all at the same time.
func (g *Gatherer) sendEach(ctx context.Context, callers [][]placing.Claim) []error {
	errs := make([]error, len(callers))
	var sent sync.WaitGroup
	for i, claims := range callers {
		sent.Go(func() { errs[i] = g.Placement.Claim(ctx, claims) })
	}
	sent.Wait()
	return errs
}
