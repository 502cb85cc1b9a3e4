// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

const (
	forgetEvery = time.Hour
	forgetTTL   = 10 * time.Second

	recordEvery   = 100 * time.Millisecond
	recordBatch   = 100
	recordWaiting = 1000
)

// decisionKeeper stores decisions, all or none. It does not change those that it already has.
type decisionKeeper interface {
	KeepDecisions(ctx context.Context, list []placing.Decision) error
}

// openRecorder opens the jobs that store decisions and delete old ones.
func openRecorder(s shared) (*recorder, feature) {
	r := newRecorder(s.db, s.logOf("scheduler"))
	f := feature{
		jobs:    []job.Job{r.job(), s.purge("old decisions", s.config.Scheduler.DecisionRetention, s.db.PurgeDecisions)},
		closers: []func() error{r.close},
	}
	f.metrics.counter("almanac_decisions_lost_total", "Placement decisions that were not stored.", nil, func() float64 { return float64(r.lostSoFar()) })
	return r, f
}

// recorder buffers decisions for the database, so that a placement need not wait for it.
type recorder struct {
	db   decisionKeeper
	log  *slog.Logger
	full chan struct{} // signals that a batch is full

	mu      sync.Mutex
	waiting []placing.Decision // oldest first, at most recordWaiting
	lost    int64              // decisions that will never be stored
	losing  int64              // of them, those since the log's last warning
}

func newRecorder(db decisionKeeper, log *slog.Logger) *recorder {
	return &recorder{db: db, log: log, full: make(chan struct{}, 1)}
}

// job returns the job that stores waiting decisions.
func (r *recorder) job() job.Job {
	return job.Job{Name: "decisions", Every: recordEvery, Step: r.write, Wake: r.full}
}

// Keep queues a decision for storage; the caller must not change it afterwards. It never blocks:
// if too many decisions wait, it drops the oldest.
func (r *recorder) Keep(d placing.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, d)
	r.shorten()
	if len(r.waiting) == recordBatch { // a longer queue was signaled before, and the database is slow
		job.Poke(r.full)
	}
}

// shorten drops the decisions beyond recordWaiting, and logs the first loss. The caller holds the
// lock.
func (r *recorder) shorten() {
	more := len(r.waiting) - recordWaiting
	if more <= 0 {
		return
	}
	clear(r.waiting[:more])
	r.waiting = r.waiting[more:]
	if r.losing == 0 {
		r.log.Warn("the database is slow or away; the oldest placement decisions are lost from now on", "waiting", recordWaiting)
	}
	r.losing += int64(more)
	r.lost += int64(more)
}

// write stores the waiting decisions in batches. A batch waits again after a temporary error and
// is lost after any other. write must not run twice at once.
func (r *recorder) write(ctx context.Context) error {
	for {
		batch := r.take()
		if len(batch) == 0 {
			return nil
		}
		if err := r.db.KeepDecisions(ctx, batch); err != nil {
			r.failed(batch, err)
			return err
		}
		r.stored()
	}
}

// take removes the oldest batch from the queue.
func (r *recorder) take() []placing.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.waiting), recordBatch)
	batch := slices.Clone(r.waiting[:n])
	clear(r.waiting[:n])
	r.waiting = r.waiting[n:]
	return batch
}

func (r *recorder) failed(batch []placing.Decision, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	passing := fault.Is(err, fault.Unavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if !passing {
		r.lost += int64(len(batch)) // the job logs why
		return
	}
	r.waiting = append(batch, r.waiting...)
	r.shorten()
}

func (r *recorder) stored() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.losing > 0 {
		r.log.Info("resumed storing placement decisions", "lost", r.losing)
		r.losing = 0
	}
}

// lostSoFar returns how many decisions will never be stored.
func (r *recorder) lostSoFar() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// close stores the waiting decisions after the job has ended.
func (r *recorder) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := r.write(ctx); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.log.Warn("could not store placement decisions before the stop", "lost", len(r.waiting), "error", err)
	}
	return nil
}
