package controller

import (
	"cmp"
	"slices"
)

const (
	// Measured is how many of the last transfers tell of the rate, and enough how many of
	// them there must be for a rate that is faster than the configured one to be believed.
	Measured, enough = 20, 5
	// slowShare is the share of the bytes that come no faster than the estimate: doubt is
	// slow.
	slowShare = 0.25
	// asking is for how many seconds the cloud is asked before the first transfer of a call
	// begins: only the first has them in its time.
	asking = 3
	// Telling is how many bytes an image must have whose transfer tells of the rate: for a
	// smaller one it takes longer to ask.
	Telling = 64 << 20
	// floor is the share of the configured rate that is expected in any case: what is
	// measured then is no rate.
	floor = 0.1
)

// Rate estimates how many bytes a second come from the repository, from the last of the
// transfers that the cloud has confirmed: the rate that a quarter of their bytes did not
// reach, so that neither one that was very fast, since the host had the image already, nor
// one that hung decides alone. Small images do not count. Until there are enough of them it
// is not more than the configured rate, and never less than a tenth of that.
func Rate(configured float64, transfers []Transfer) float64 {
	var done []Transfer
	for _, t := range transfers {
		if t.Outcome == There && t.Begun > 0 && t.Finished >= t.Begun && t.Bytes >= Telling {
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

// rate is in bytes a second; what took less than a second is taken for one.
func (t Transfer) rate() float64 {
	took := t.Finished - t.Begun
	if t.Begun == t.Started {
		took -= asking
	}
	return float64(t.Bytes) / float64(max(1, took))
}
