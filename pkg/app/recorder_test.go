// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// shelf is a store of decisions that fails with err.
type shelf struct {
	err    error
	tries  int
	stored []string // the ids of the requests
	sizes  []int    // of the batches
	// during runs while decisions are being stored.
	during func()
}

func (s *shelf) KeepDecisions(ctx context.Context, list []placing.Decision) error {
	s.tries++
	if s.during != nil {
		s.during()
	}
	if err := errors.Join(ctx.Err(), s.err); err != nil {
		return err
	}
	for _, d := range list {
		s.stored = append(s.stored, d.RequestID)
	}
	s.sizes = append(s.sizes, len(list))
	return nil
}

// numbers returns the numbers in [from, to) as text.
func numbers(from, to int) (list []string) {
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprint(i))
	}
	return list
}

func keepAll(r *recorder, ids []string) {
	for _, id := range ids {
		r.Keep(placing.Decision{RequestID: id})
	}
}

func newShelf() (*shelf, *recorder, *bytes.Buffer) {
	s, log := &shelf{}, &bytes.Buffer{}
	return s, newRecorder(s, slog.New(slog.NewTextHandler(log, nil))), log
}

var away = fault.New(fault.Unavailable, "the database is away")

func TestDecisionsAreStoredInOrderInBatches(t *testing.T) {
	s, r, _ := newShelf()
	for range 2 { // the second finds nothing
		if err := r.write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	keepAll(r, numbers(0, 2*recordBatch+5))
	if err := r.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(numbers(0, 2*recordBatch+5), s.stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{recordBatch, recordBatch, 5}, s.sizes); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

func TestAFullBatchIsStoredAtOnceAndFewSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r, _ := newShelf()
		begin, at := time.Now(), []time.Duration{}
		s.during = func() { at = append(at, time.Since(begin)) }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.job().Run(ctx, slog.New(slog.DiscardHandler))
		}()
		synctest.Wait()
		keepAll(r, numbers(0, recordBatch))
		synctest.Wait()
		r.Keep(placing.Decision{})
		time.Sleep(10 * recordEvery)
		cancel()
		<-done
		if diff := cmp.Diff([]int{recordBatch, 1}, s.sizes); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]time.Duration{0, recordEvery}, at); diff != "" {
			t.Errorf("stored after (-want +got):\n%s", diff)
		}
	})
}

func TestWhileTheDatabaseIsAwayDecisionsWaitAndTheOldestAreLost(t *testing.T) {
	s, r, log := newShelf()
	s.err = away
	keepAll(r, numbers(0, recordWaiting))
	if err := r.write(t.Context()); !errors.Is(err, away) || s.tries != 1 {
		t.Fatalf("after %d tries: %v", s.tries, err)
	}
	if log.Len() > 0 || r.lostSoFar() != 0 {
		t.Errorf("%d are lost:\n%s", r.lostSoFar(), log)
	}
	keepAll(r, numbers(recordWaiting, recordWaiting+3))
	s.during = func() { keepAll(r, numbers(recordWaiting+3, recordWaiting+5)); s.during = nil }
	if err := r.write(t.Context()); !errors.Is(err, away) {
		t.Fatal(err)
	}
	s.err = nil
	for range 2 {
		if err := r.write(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(numbers(5, recordWaiting+5), s.stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if told := log.String(); strings.Count(told, "level=WARN") != 1 || strings.Count(told, "lost=5") != 1 || strings.Count(told, "\n") != 2 {
		t.Errorf("the log has\n%s", told)
	}
	if r.lostSoFar() != 5 {
		t.Errorf("%d are lost, want 5", r.lostSoFar())
	}
}

func TestADecisionThatCannotBeStoredIsNoTroubleToOthers(t *testing.T) {
	s, r, _ := newShelf()
	s.err = errors.New("the column is too small")
	keepAll(r, numbers(0, 2*recordBatch))
	if err := r.write(t.Context()); !errors.Is(err, s.err) {
		t.Fatalf("write: %v", err)
	}
	s.err = nil
	if err := r.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(numbers(recordBatch, 2*recordBatch), s.stored); diff != "" || r.lostSoFar() != recordBatch {
		t.Errorf("%d are lost; stored (-want +got):\n%s", r.lostSoFar(), diff)
	}
}

func TestAStopStoresWhatWaits(t *testing.T) {
	s, r, log := newShelf()
	keepAll(r, numbers(0, 2))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.write(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("a write that was broken off: %v", err)
	}
	r.Keep(placing.Decision{RequestID: "2"})
	if err := r.close(); err != nil || log.Len() > 0 {
		t.Errorf("%v:\n%s", err, log)
	}
	if diff := cmp.Diff(numbers(0, 3), s.stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	s.err = away
	r.Keep(placing.Decision{})
	if err := r.close(); err != nil || !strings.Contains(log.String(), "lost=1") {
		t.Errorf("without a database: %v:\n%s", err, log)
	}
}
