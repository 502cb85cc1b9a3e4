// SPDX-License-Identifier: Apache-2.0

package state

// Limits are the bounds of waits and retries. Times are in seconds.
type Limits struct {
	// Build is how long a server may take to become ACTIVE; Order is how much longer than expected
	// a suspension or a resumption may take.
	Build, Order int64
	// Unanswered is how long a server may still appear after Nova did not answer the request to
	// create it. It must not be shorter than a call to Nova may take.
	Unanswered int64
	// Retries is how often a VM is restarted after failures that count. Backoff is the wait before
	// the first retry; it doubles each time.
	Retries int
	Backoff int64
	// Alone is true if there is only one host, so that no other can be tried.
	Alone bool
}

// longestBackoff is the longest wait between two attempts, in seconds.
const longestBackoff = 3600

// backoff returns the wait, in seconds, after that many failures.
func (l Limits) backoff(failures int) int64 {
	return min(longestBackoff, l.Backoff<<min(max(failures-1, 0), 12))
}

// hostBackoff returns for how many seconds a host is avoided if it was avoided that many times
// before.
func (l Limits) hostBackoff(times int) int64 {
	return min(longestBackoff, 8*l.Backoff<<min(times, 10))
}
