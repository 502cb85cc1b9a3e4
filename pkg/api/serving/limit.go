// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// mostLimited is the largest number of callers that limits stores; it removes the least recent one
// first.
const mostLimited = 10_000

// limits limits how often each caller may send requests. A nil *limits allows everything, and so
// does an empty caller.
//
// For each caller it stores an instant until which the allowance is used up. Each request moves
// this instant ahead by the time between requests at the permitted rate; it may be ahead of now by
// at most the burst.
type limits struct {
	each, burst time.Duration

	mu      sync.Mutex
	callers *simplelru.LRU[string, time.Duration]
}

// newLimits returns limits of perSecond requests in the long run and burst at once. It returns nil,
// which means no limit, if perSecond is 0.
func newLimits(perSecond float64, burst int) *limits {
	if perSecond <= 0 {
		return nil
	}
	callers, err := simplelru.NewLRU[string, time.Duration](mostLimited, nil)
	if err != nil {
		panic(err) // the size is not positive
	}
	each := time.Duration(float64(time.Second) / perSecond)
	return &limits{each: each, burst: each * time.Duration(max(1, burst)), callers: callers}
}

// take counts a request and returns 0. If there were too many requests, it does not count this one,
// and returns the time to wait.
func (l *limits) take(caller string, at time.Duration) time.Duration {
	if l == nil || caller == "" {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	until, _ := l.callers.Get(caller)
	until = max(until, at) + l.each
	if wait := until - at - l.burst; wait > 0 {
		return wait
	}
	l.callers.Add(caller, until)
	return 0
}

// giveBack removes one counted request.
func (l *limits) giveBack(caller string) {
	if l == nil || caller == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if until, known := l.callers.Peek(caller); known {
		l.callers.Add(caller, until-l.each)
	}
}

const addressPrefix = "address "

// isAddress reports whether a caller is an address, which has sent no token.
func isAddress(caller string) bool { return strings.HasPrefix(caller, addressPrefix) }
