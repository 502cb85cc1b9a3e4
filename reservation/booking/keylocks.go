package booking

import "sync"

// keyLocks lets one request at a time use an idempotency key: a repeated request
// waits for the first, instead of asking for what that one is about to get.
type keyLocks struct {
	mu    sync.Mutex
	inUse map[[2]string]*keyLock // by project and key
}

type keyLock struct {
	sync.Mutex
	users int // who hold it or wait; keyLocks.mu is held
}

// lock waits for the project's key and gives what releases it.
func (k *keyLocks) lock(project, key string) (unlock func()) {
	at := [2]string{project, key}
	k.mu.Lock()
	l, ok := k.inUse[at]
	if !ok {
		l = &keyLock{}
		k.inUse[at] = l
	}
	l.users++
	k.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.inUse, at)
		}
	}
}
