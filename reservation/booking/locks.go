package booking

import "sync"

// locks has a lock for each key that somebody uses: an idempotency key, so that a
// repeated request waits for the first instead of asking for what that one is
// about to get; or a host on which time is being claimed.
type locks[K comparable] struct {
	mu    sync.Mutex
	inUse map[K]*keyLock
}

type keyLock struct {
	sync.Mutex
	users int // who hold it or wait; locks.mu is held
}

// lock waits for the keys, one after the other, and gives what releases them.
// Everybody must name keys in the same order.
func (l *locks[K]) lock(keys ...K) (unlock func()) {
	for _, key := range keys {
		l.take(key).Lock()
	}
	return func() {
		for _, key := range keys {
			l.release(key)
		}
	}
}

func (l *locks[K]) take(key K) *keyLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inUse == nil {
		l.inUse = make(map[K]*keyLock)
	}
	taken, ok := l.inUse[key]
	if !ok {
		taken = &keyLock{}
		l.inUse[key] = taken
	}
	taken.users++
	return taken
}

func (l *locks[K]) release(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.inUse[key]
	held.Unlock()
	if held.users--; held.users == 0 {
		delete(l.inUse, key)
	}
}
