package booking

import (
	"context"
	"fmt"
	"sync"
)

// turn is a lock for which nobody waits longer than its context lasts.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// newSlots gives a lock that so many may hold at once.
func newSlots(n int) turn { return make(turn, n) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for others: %w", ctx.Err())
	}
}

func (t turn) leave() { <-t }

// locks has a lock for each key that somebody uses: an idempotency key, so that a
// repeated request waits for the first instead of asking for what that one is
// about to get; or a host on which time is being claimed.
type locks[K comparable] struct {
	mu    sync.Mutex
	inUse map[K]*keyLock
	spare []*keyLock // of keys that nobody uses any more
}

// mostSpare bounds how many locks are kept for the next keys.
const mostSpare = 1024

type keyLock struct {
	turn
	users int // who hold it or wait; locks.mu is held
}

// lock waits for the keys, one after the other, and gives what releases them. The
// keys differ, and everybody names them in the same order.
func (l *locks[K]) lock(ctx context.Context, keys ...K) (unlock func(), err error) {
	for i, key := range keys {
		if err := l.use(key).take(ctx); err != nil {
			l.mu.Lock()
			l.disuse(key)
			l.mu.Unlock()
			l.release(keys[:i])
			return nil, err
		}
	}
	return func() { l.release(keys) }, nil
}

func (l *locks[K]) release(keys []K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		l.inUse[key].leave()
		l.disuse(key)
	}
}

func (l *locks[K]) use(key K) *keyLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inUse == nil {
		l.inUse = make(map[K]*keyLock)
	}
	used, ok := l.inUse[key]
	switch n := len(l.spare); {
	case ok:
	case n > 0:
		used, l.spare = l.spare[n-1], l.spare[:n-1]
		l.inUse[key] = used
	default:
		used = &keyLock{turn: newTurn()}
		l.inUse[key] = used
	}
	used.users++
	return used
}

// disuse is done by whoever does not hold the key, or wait for it, any more; mu is held.
func (l *locks[K]) disuse(key K) {
	used := l.inUse[key]
	if used.users--; used.users > 0 {
		return
	}
	delete(l.inUse, key)
	if len(l.spare) < mostSpare {
		l.spare = append(l.spare, used)
	}
}
