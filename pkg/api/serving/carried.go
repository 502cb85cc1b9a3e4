// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"sync"
	"time"
)

// The largest number of bytes of bodies that arrive or wait for their turn, and of answers that are being sent, those of
// one caller and those of all.
const (
	mostArriving, mostArrivingOfAll = 16 << 20, 256 << 20
	mostUnsent, mostUnsentOfAll     = int64(WholeList), 8 * int64(WholeList)
	// leastCarried is how many bytes a connection takes beside the body or the answer.
	leastCarried = 16 << 10
)

// Past is a deadline that is over.
var Past = time.Unix(1, 0)

// carried are the bodies or the answers that wait for a client. If there are too many bytes, those that have waited
// longest are given up, those of addresses first.
type carried struct {
	most, mostOfAll int64

	mu      sync.Mutex
	all     int64
	callers map[string]*carriedOf
}

// carriedOf are those of one caller, the oldest first.
type carriedOf struct {
	bytes int64
	list  []*carriage
}

type carriage struct {
	bytes  int64
	giveUp func()
}

func newCarried(most, mostOfAll int64) *carried {
	return &carried{most: most, mostOfAll: mostOfAll, callers: make(map[string]*carriedOf)}
}

// add adds so many bytes that wait for a caller's client; giveUp, which must not block, ends the wait. The caller of
// add calls done when it is over. Those of an empty caller are not counted.
func (l *carried) add(caller string, bytes int64, giveUp func()) (done func()) {
	if caller == "" {
		return func() {}
	}
	one := &carriage{bytes + leastCarried, giveUp}
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.callers[caller]
	if of == nil {
		of = &carriedOf{}
		l.callers[caller] = of
	}
	of.list = append(of.list, one)
	of.bytes, l.all = of.bytes+one.bytes, l.all+one.bytes
	for of.bytes > l.most && len(of.list) > 1 {
		l.giveUpOldest(caller)
	}
	for l.all > l.mostOfAll {
		l.giveUpOldest(l.largest())
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.remove(caller, one)
	}
}

// largest returns the caller with the most bytes, of several the last by name. An address comes before those with a
// token, since anybody may send from many. mu is held.
func (l *carried) largest() (caller string) {
	token := func(name string) int {
		if isAddress(name) {
			return 0
		}
		return 1
	}
	for name, of := range l.callers {
		if caller == "" || cmp.Or(cmp.Compare(token(caller), token(name)), cmp.Compare(of.bytes, l.callers[caller].bytes), cmp.Compare(name, caller)) > 0 {
			caller = name
		}
	}
	return caller
}

// giveUpOldest abandons what a caller's client has let wait longest; mu is held, so that it is not over yet.
func (l *carried) giveUpOldest(caller string) {
	oldest := l.callers[caller].list[0]
	oldest.giveUp()
	l.remove(caller, oldest)
}

// remove removes one, if it is still there; mu is held.
func (l *carried) remove(caller string, one *carriage) {
	of := l.callers[caller]
	if of == nil {
		return
	}
	for i := range of.list {
		if of.list[i] == one {
			of.list = append(of.list[:i], of.list[i+1:]...)
			of.bytes, l.all = of.bytes-one.bytes, l.all-one.bytes
			break
		}
	}
	if len(of.list) == 0 {
		delete(l.callers, caller)
	}
}
