// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// contextMutex is a lock for which a caller waits until the context ends at most.
type contextMutex chan struct{}

func newContextMutex() contextMutex { return make(contextMutex, 1) }

// newSlots returns a lock that n callers may have at the same time.
func newSlots(n int) contextMutex { return make(contextMutex, n) }

func (t contextMutex) lock(ctx context.Context) error {
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

func (t contextMutex) unlock() { <-t }

// locks contains a lock for each key in use. A key is an idempotency key, so that a repeated
// request waits for the first one and gets its reservation; or a host on which time is being
// claimed.
type locks[K comparable] struct {
	mu    sync.Mutex
	inUse map[K]*keyLock
	spare []*keyLock // for keys to come
}

// mostSpare is the maximum number of spare locks.
const mostSpare = 1024

type keyLock struct {
	contextMutex
	users int // how many hold it or wait for it; locks.mu is held
}

// lock locks the keys, one after the other, and returns the function that unlocks them. The
// keys differ, and all callers name them in the same order.
func (l *locks[K]) lock(ctx context.Context, keys ...K) (unlock func(), err error) {
	for i, key := range keys {
		if err := l.use(key).lock(ctx); err != nil {
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
		l.inUse[key].unlock()
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
		used = &keyLock{contextMutex: newContextMutex()}
		l.inUse[key] = used
	}
	used.users++
	return used
}

// disuse records that a caller no longer has the lock of the key or waits for it. The caller holds
// mu.
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

// memoryLock counts how often the memory that it guards may have changed.
type memoryLock struct {
	sync.RWMutex
	revision atomic.Uint64
}

func (l *memoryLock) Lock() {
	l.RWMutex.Lock()
	l.revision.Add(1)
}

// lockToLook locks like Lock, for a section that changes nothing in memory except what the
// calendar and the index share with their snapshots.
func (l *memoryLock) lockToLook() { l.RWMutex.Lock() }
