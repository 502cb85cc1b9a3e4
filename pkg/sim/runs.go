// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
)

// Experiment is a simulation with its options.
type Experiment interface {
	// Check returns an Invalid fault that names the first impossible option.
	Check() error
	// Run returns the report on options that Check accepts. The same options produce the same report,
	// except for times that it measures. progress may be nil.
	Run(ctx context.Context, progress Progress) (*Report, error)
}

// Perform checks the options of an experiment and runs it.
func Perform(ctx context.Context, e Experiment, progress Progress) (*Report, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	return e.Run(ctx, progress)
}

// Progress is called with the number of finished steps and of all steps. Several goroutines may
// call it at once.
type Progress func(done, of int)

// Runs performs n runs, as many in parallel as there are processors, and returns their results
// in order. It stops at the first error. progress may be nil.
func Runs[T any](ctx context.Context, n int, progress Progress, run func(ctx context.Context, i int) (T, error)) ([]T, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	results := make([]T, n)
	var next, done atomic.Int64
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				result, err := run(ctx, i)
				if err != nil {
					stop(err)
					return
				}
				results[i] = result
				if finished := int(done.Add(1)); progress != nil {
					progress(finished, n)
				}
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return results, nil
}

// Grid performs so many runs of each setting like Runs, and returns their results by setting.
func Grid[S comparable, T any](ctx context.Context, settings []S, runs int, progress Progress, run func(ctx context.Context, s S, run int) (T, error)) (map[S][]T, error) {
	all, err := Runs(ctx, len(settings)*runs, progress, func(ctx context.Context, i int) (T, error) {
		return run(ctx, settings[i/runs], i%runs)
	})
	if err != nil {
		return nil, err
	}
	results := make(map[S][]T, len(settings))
	for i, s := range settings {
		results[s] = all[i*runs : (i+1)*runs]
	}
	return results, nil
}

// Chance returns a source of random numbers that is determined by the seed and by words that name
// its purpose. Sources with different words are independent.
func Chance(seed uint64, words ...any) *rand.Rand {
	h := fnv.New64a()
	for _, w := range words {
		switch w := w.(type) {
		case string:
			_, _ = h.Write([]byte(w)) // never fails
		case int:
			_, _ = h.Write([]byte(strconv.Itoa(w)))
		default:
			panic("sim: the words of Chance must be strings or ints")
		}
		_, _ = h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
