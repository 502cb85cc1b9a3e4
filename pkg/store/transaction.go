// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
)

const (
	firstWait = 10 * time.Millisecond // before the first retry of a transaction
	doublings = 8                     // then the wait stays at 2.6 s
)

// inDoubt is an error of COMMIT after which it is unknown whether the transaction was carried out.
type inDoubt struct{ err error }

func (e *inDoubt) Error() string { return e.err.Error() }

func (e *inDoubt) Unwrap() error { return e.err }

// look runs act, which must read with one statement.
func (s *Store) look(ctx context.Context, act func(db *gorm.DB) error) error {
	return s.persist(ctx, func(ctx context.Context) error { return act(s.reader.WithContext(ctx)) })
}

// read runs act in a transaction that sees one state of the database. act may run several
// times.
func (s *Store) read(ctx context.Context, act func(tx *gorm.DB) error) error {
	return s.persist(ctx, func(ctx context.Context) error {
		return s.transact(s.reader.WithContext(ctx).Begin(&sql.TxOptions{ReadOnly: true}), act)
	})
}

// write runs act in a transaction of its own. act may run several times, even after a run that was
// carried out: the last run must have the same effect as the first. If ctx is canceled, no
// transaction begins, but one that has begun is completed.
func (s *Store) write(ctx context.Context, act func(tx *gorm.DB) error) error {
	return s.persist(ctx, func(ctx context.Context) error { return s.writeOnce(ctx, act) })
}

func (s *Store) writeOnce(ctx context.Context, act func(tx *gorm.DB) error) error {
	if s.writing != nil {
		if err := s.queue(ctx); err != nil {
			return err
		}
		defer func() { <-s.writing }()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	whole, end := unbroken(ctx)
	defer end()
	err := s.transact(s.writer.WithContext(whole).Begin(), func(tx *gorm.DB) error {
		if err := ctx.Err(); err != nil { // the caller has gone during the wait for a connection
			return err
		}
		return act(tx)
	})
	switch {
	case s.writing == nil: // a server's connections look at its answers
	case err == nil:
		s.writability.accept()
	case isReadOnly(err):
		s.writability.refuse(err)
	}
	return err
}

// unbroken returns a context with the deadline of ctx that does not end when ctx is canceled, so
// that a caller that goes away does not interrupt a transaction.
func unbroken(ctx context.Context) (context.Context, context.CancelFunc) {
	whole := context.WithoutCancel(ctx)
	if deadline, bounded := ctx.Deadline(); bounded {
		return context.WithDeadline(whole, deadline)
	}
	return whole, func() {}
}

// transact runs act in tx and ends it.
func (s *Store) transact(tx *gorm.DB, act func(tx *gorm.DB) error) error {
	if tx.Error != nil {
		return tx.Error
	}
	defer tx.Rollback() // does nothing after the commit
	if err := act(tx); err != nil {
		return err
	}
	err := tx.Commit().Error
	if err != nil && s.engine.passing != nil && !rolledBack(err) {
		return &inDoubt{err}
	}
	return err
}

// persist runs attempt until it succeeds, fails permanently, or Patience is over.
func (s *Store) persist(ctx context.Context, attempt func(ctx context.Context) error) error {
	bounded, cancel := s.patient(ctx)
	defer cancel()
	return s.repeat(ctx, bounded, func() error { return attempt(bounded) })
}

// readWhole is read for an act that reads all there is: it takes as long as that takes. Patience only
// bounds when it begins.
func (s *Store) readWhole(ctx context.Context, act func(tx *gorm.DB) error) error {
	bounded, cancel := s.patient(ctx)
	defer cancel()
	return s.repeat(ctx, bounded, func() error {
		return s.transact(s.reader.WithContext(ctx).Begin(&sql.TxOptions{ReadOnly: true}), act)
	})
}

// patient returns ctx with the end of Patience.
func (s *Store) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.options.Patience > 0 {
		return context.WithTimeout(ctx, s.options.Patience)
	}
	return ctx, func() {}
}

// repeat runs attempt until it succeeds, fails permanently, or bounded, which ctx bounds, ends.
func (s *Store) repeat(ctx, bounded context.Context, attempt func() error) error {
	for n := 0; ; n++ {
		err := attempt()
		if err == nil {
			return nil
		}
		if !s.passing(err) || n == s.options.Retries || n >= readOnlyRetries && isReadOnly(err) || !s.pause(bounded, n) {
			return s.plain(ctx, err)
		}
		s.retries.count(err)
	}
}

func (s *Store) passing(err error) bool {
	if s.engine.passing == nil {
		return false
	}
	_, doubt := errors.AsType[*inDoubt](err)
	return doubt || s.engine.passing(err)
}

// retries counts the transactions that were repeated, by reason.
type retries struct {
	inDoubt, deadlock, lockWait, galera, readOnly, lost atomic.Int64
}

// count adds one for the error of an attempt.
func (r *retries) count(err error) {
	if _, doubt := errors.AsType[*inDoubt](err); doubt {
		r.inDoubt.Add(1)
		return
	}
	switch number(err) {
	case 1213, 1020:
		r.deadlock.Add(1)
	case 1205:
		r.lockWait.Add(1)
	case noMajority:
		r.galera.Add(1)
	case 1290, 1792, 1836:
		r.readOnly.Add(1)
	default:
		r.lost.Add(1)
	}
}

// Retries returns how many transactions were repeated since Open, by reason: "deadlock",
// which on Galera is also a commit at another node, "lock_wait", "galera" (the node is not
// part of a majority), "read_only" (it accepts no changes), "lost" (the server could not be reached, or ended), and "in_doubt"
// (the outcome of a COMMIT was unknown). It always has all reasons.
func (s *Store) Retries() map[string]int64 {
	r := &s.retries
	return map[string]int64{
		"deadlock": r.deadlock.Load(), "lock_wait": r.lockWait.Load(), "galera": r.galera.Load(),
		"read_only": r.readOnly.Load(), "lost": r.lost.Load(), "in_doubt": r.inDoubt.Load(),
	}
}

// pause waits before a transaction is repeated; it returns false if ctx ends first. The wait has
// full jitter, so that conflicting transactions separate.
func (s *Store) pause(ctx context.Context, n int) bool {
	wait := firstWait << min(n, doublings)
	if most := s.options.LongestWait; most > 0 {
		wait = min(wait, most)
	}
	if s.options.Random != nil {
		wait = time.Duration(s.options.Random() * float64(wait))
	}
	return job.Pause(ctx, wait) == nil
}

// plain returns the error of the context if that has ended the work, whatever the driver returned,
// and a fault if Patience has.
func (s *Store) plain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, sql.ErrTxDone):
		return busy(err)
	}
	return s.engine.translate(err)
}

// queue waits until the other writes of this process are done. Waiting for a connection of the pool
// instead would have no time limit.
func (s *Store) queue(ctx context.Context) error {
	select {
	case s.writing <- struct{}{}:
		return nil
	default:
	}
	select {
	case s.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.options.BusyTimeout):
		return busy(errors.New("waited for other writes of this process"))
	}
}

// busy returns a fault for a problem that passes in a moment.
func busy(err error) error {
	return &fault.Error{
		Kind:       fault.Unavailable,
		Message:    "the database is busy; try again in a moment",
		RetryAfter: time.Second,
		Err:        err,
	}
}

// away returns a fault for a problem that lasts until the database is back.
func away(err error) error {
	return &fault.Error{
		Kind:       fault.Unavailable,
		Message:    "the database does not answer; try again in a moment",
		RetryAfter: 5 * time.Second,
		Err:        err,
	}
}

// unavailable returns a fault for a problem that the operator must solve.
func unavailable(err error, message string) error {
	return &fault.Error{Kind: fault.Unavailable, Message: message, RetryAfter: 30 * time.Second, Err: err}
}
