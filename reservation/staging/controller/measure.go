// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"slices"
)

const (
	// Measured is the number of latest transfers from which the rate is measured. enough is how
	// many are necessary for a rate above the configured one.
	Measured, enough = 20, 5
	// slowShare is the share of the bytes that arrived at a lower rate than the estimate, which is
	// therefore a cautious one.
	slowShare = 0.25
	// asking is for how many seconds the cloud handles a call before its first transfer begins.
	// Only the duration of the first transfer includes them.
	asking = 3
	// Telling is the size in bytes from which the transfer of an image counts for the rate: for
	// smaller images the call takes longer than the transfer.
	Telling = 64 << 20
	// floor is the smallest share of the configured rate that is assumed: a slower measurement has
	// other causes than the rate.
	floor = 0.1
)

// Rate estimates the rate of the repository, in bytes a second, from the last transfers that the
// cloud has confirmed. A quarter of their bytes arrived at a lower rate, so that a single transfer
// does not determine the result, neither a very fast one to a host that had the image already nor
// one that hung. Small images do not count. With few transfers the estimate is at most the
// configured rate, and it is never less than a tenth of that.
func Rate(configured float64, transfers []Transfer) float64 {
	var done []Transfer
	for _, t := range transfers {
		if t.Outcome == TransferThere && t.Begun > 0 && t.Finished >= t.Begun && t.Bytes >= Telling {
			done = append(done, t)
		}
	}
	slices.SortStableFunc(done, func(a, b Transfer) int { return cmp.Compare(a.Finished, b.Finished) })
	done = done[max(0, len(done)-Measured):]
	if len(done) == 0 {
		return configured
	}
	slices.SortStableFunc(done, func(a, b Transfer) int { return cmp.Compare(a.rate(), b.rate()) })
	var all, passed float64
	for _, t := range done {
		all += float64(t.Bytes)
	}
	rate := 0.0
	for _, t := range done {
		rate = t.rate()
		if passed += float64(t.Bytes); passed >= slowShare*all {
			break
		}
	}
	if rate = max(rate, floor*configured); len(done) < enough {
		return min(rate, configured)
	}
	return rate
}

// rate returns bytes a second; a transfer of less than a second counts as one second.
func (t Transfer) rate() float64 {
	took := t.Finished - t.Begun
	if t.Begun == t.Started {
		took -= asking
	}
	return float64(t.Bytes) / float64(max(1, took))
}
