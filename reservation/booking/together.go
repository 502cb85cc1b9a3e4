// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/tracing"
)

const (
	// mostTogether is the largest number of new reservations that one transaction stores. The
	// transaction takes a database longer for each of them, and they all wait for the last.
	mostTogether = 16
	// mostClaimsTogether bounds the claims of a transaction for several new reservations. While it
	// runs, others wait for its hosts.
	mostClaimsTogether = 256
)

// companies returns what stores the new reservations of a project that wait for each other in one
// transaction, all or none. All bookings of a project change its usage, so that their transactions
// would wait for each other's commit to disk.
func (w *writer) companies() *job.Together[string, *attempt] {
	return &job.Together[string, *attempt]{
		AtOnce: 1, Fits: keepsCompany, Stay: true,
		Do: func(ctx context.Context, attempts []*attempt) []error {
			return slices.Repeat([]error{w.commitTogether(ctx, whole{}, attempts...)}, len(attempts))
		},
	}
}

// keepsCompany reports whether a transaction for these attempts may store one more.
func keepsCompany(attempts []*attempt, more *attempt) bool {
	claims := len(more.next.Claims)
	for _, a := range attempts {
		claims += len(a.next.Claims)
	}
	return len(attempts) < mostTogether && claims <= mostClaimsTogether
}

// commitNew is commit for a new reservation. If no other new reservation of the project is being
// stored, it waits for nothing. A reservation with an idempotency key stays alone, so that a used
// key affects no others, and so does one with many claims, which others would wait for.
func (w *writer) commitNew(ctx context.Context, a *attempt) (err error) {
	if a.key != nil || len(a.next.Claims) > mostClaimsTogether {
		return w.commit(ctx, a)
	}
	ctx, end := tracing.Step(ctx, "wait and commit", factsOf(whole{}, []*attempt{a})...)
	defer func() { end(err) }()
	err = w.together.Run(ctx, a.next.ProjectID, a)
	if errors.Is(err, job.ErrNotBegun) {
		return w.notStored([]*attempt{a}, fmt.Errorf("wait for others: %w", err))
	}
	return err
}
