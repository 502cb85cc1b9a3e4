// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Word is a report of the cloud about an image on a host, in answer to a call.
type Word struct {
	Call, Host     string // Call is empty if the cloud does not name it
	Cached, Failed []string
	At             span.Instant // when it was heard
}

// The details of failed and lost transfers.
const (
	refused = "Nova could not put it there; see the log of nova-compute on the host"
	unheard = "Nova did not report on it in time"
	lost    = "Nova reported on no host of the call in time"
)

// settle ends the transfers about which the cloud has reported, and those whose time is over. If
// the cloud has reported about no host of a call by the Bound of its first transfer, the call
// counts as lost: the first transfer has failed, and the others are lost. A report that a host has
// the image counts in answer to any call since the transfer began. A report that it failed counts
// only in answer to the transfer's own call, because an earlier call that was abandoned may still
// fail.
func (r *Rules) settle(s *Stored, words []Word, now span.Instant) (c Change) {
	cached := map[imageOnHost]Cached{}
	for _, one := range s.Cached {
		cached[imageOnHost{one.Image, one.Host}] = one
	}
	silent := silentCalls(s.Transfers, words)
	for _, t := range s.Transfers {
		if t.Outcome != "" {
			continue
		}
		if said := outcome(t, words); said.Outcome != "" {
			t.Outcome, t.Finished, t.Detail = said.Outcome, said.at, said.Detail
		} else if t.Bound <= now && r.Heard {
			t.Outcome, t.Finished, t.Detail = TransferFailed, now, unheard
		} else if first, is := silent[t.Call]; is && first <= now && r.Heard {
			t.Outcome, t.Finished, t.Detail = TransferLost, now, lost
		} else if !r.Heard && t.Expected <= now {
			t.Outcome, t.Finished = TransferAssumed, now
		} else {
			continue
		}
		one, had := cached[imageOnHost{t.Image, t.Host}]
		used := t.Finished
		if had && t.Outcome == TransferThere {
			t.Outcome, used = TransferKept, t.Started // the report may be late
		}
		c.Transfers = append(c.Transfers, t)
		if t.Outcome == TransferFailed || t.Outcome == TransferLost {
			continue
		}
		if !had {
			one = Cached{Image: t.Image, Host: t.Host, Since: t.Finished}
		}
		one.Bytes, one.LastUsed = t.Bytes, max(one.LastUsed, used)
		c.Cached = append(c.Cached, one)
	}
	setBegun(s.Transfers, c.Transfers)
	return c
}

// silentCalls returns the calls under way about which the cloud has not reported anything, by their
// ids, with the earliest Bound of their transfers.
func silentCalls(transfers []Transfer, words []Word) map[string]span.Instant {
	silent := map[string]span.Instant{}
	for _, t := range transfers {
		if first, had := silent[t.Call]; t.Outcome == "" && (!had || t.Bound < first) {
			silent[t.Call] = t.Bound
		}
	}
	for _, t := range transfers {
		if t.Outcome == TransferThere || t.Outcome == TransferKept || t.Detail == refused || t.Outcome == "" && outcome(t, words).Outcome != "" {
			delete(silent, t.Call)
		}
	}
	for _, w := range words {
		delete(silent, w.Call)
	}
	return silent
}

// verdict is what the reports mean for a transfer.
type verdict struct {
	Outcome
	Detail string
	at     span.Instant
}

func outcome(t Transfer, words []Word) (v verdict) {
	for _, w := range words {
		if w.Host != t.Host || w.At < t.Started {
			continue
		}
		switch {
		case slices.Contains(w.Cached, t.Image):
			return verdict{TransferThere, "", w.At}
		case slices.Contains(w.Failed, t.Image) && (w.Call == t.Call || w.Call == ""):
			v = verdict{TransferFailed, refused, w.At}
		}
	}
	return v
}

// setBegun sets Begun of the transfers that have ended in this step: when the transfer before it,
// of those that were started at the same instant, had ended.
func setBegun(stored, ended []Transfer) {
	slices.SortStableFunc(ended, func(a, b Transfer) int { return cmp.Compare(a.Finished, b.Finished) })
	for i := range ended {
		t := &ended[i]
		t.Begun = t.Started
		for _, list := range [][]Transfer{stored, ended[:i]} {
			for _, other := range list {
				if other.Started == t.Started && other.ID != t.ID && other.Outcome != "" && other.Finished <= t.Finished {
					t.Begun = max(t.Begun, other.Finished)
				}
			}
		}
	}
}

// tidy returns a change that deletes obsolete records: of images that the cloud has removed from
// hosts, of images on hosts that have left the cloud, and of images that nothing uses. exists
// reports whether a host is in the cloud; it must return true if that is uncertain.
func (r *Rules) tidy(s *Stored, needed map[string]bool, exists func(host string) bool, now span.Instant) (c Change) {
	used := map[string]bool{}
	for _, one := range s.Cached {
		if r.gone(one) <= now || !exists(one.Host) {
			c.Forgotten = append(c.Forgotten, one)
		} else {
			used[one.Image] = true
		}
	}
	for _, t := range s.Transfers {
		used[t.Image] = true
	}
	for _, i := range s.Images {
		if !needed[i.ID] && !used[i.ID] && i.Looked < now.Add(-fresh) {
			c.ForgetImages = append(c.ForgetImages, i.ID)
		}
	}
	return c
}
