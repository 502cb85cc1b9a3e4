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

// Progress is told how many of a number of steps are done. It may be called by several
// goroutines.
type Progress func(done, of int)

// Runs does n runs, side by side as far as there are processors, and gives what they gave in
// their order. It stops at the first error. progress may be nil.
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

// Chance gives random numbers that follow from the seed and the words that say what they are
// for: the same for the same, and independent of each other for others.
func Chance(seed uint64, words ...any) *rand.Rand {
	h := fnv.New64a()
	for _, w := range words {
		switch w := w.(type) {
		case string:
			_, _ = h.Write([]byte(w)) // never fails
		case int:
			_, _ = h.Write([]byte(strconv.Itoa(w)))
		default:
			panic("sim: chance is named by strings and ints")
		}
		_, _ = h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
