// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// Rules are the operator's settings. Times without a type are in seconds.
type Rules struct {
	Strategy staging.Strategy
	// Rate is how many bytes a second come from the repository, until that is measured, and Link
	// how many a host receives; Link 0 means no limit.
	Rate, Link float64
	// Limit is the largest total size of the images on a host, in bytes; 0 means no limit.
	Limit int64
	// Margin is the number of seconds before a start at which its images must be on the hosts.
	Margin int64
	// Lifetime is for how many seconds a host keeps an image that no instance uses; 0 means
	// forever.
	Lifetime int64
	// Factor is how many times longer than expected a transfer may take.
	Factor float64
	// Retries is how often a failed transfer is tried again for a reservation, and RetryDelay the
	// seconds before the first retry; they double each time.
	Retries    int
	RetryDelay int64
	// Heard is true if Almanac receives the cloud's reports. Otherwise a transfer counts as done
	// after its expected duration.
	Heard bool
	Poll  time.Duration
}

const (
	// slack is how many seconds a transfer may take in addition to what Factor allows, since the
	// call itself takes a while.
	slack = 60
	// most is the largest number of hosts in the calls of one step. longCall is the number of
	// seconds of transfers after which a call gets no more hosts: more urgent transfers cannot
	// interrupt those under way.
	most, longCall = 32, 120
	// longestWait is the longest time, in seconds, from a call that did not reach the cloud until
	// the next call. lastChance is how many seconds before its last possible moment an abandoned
	// transfer is tried once more.
	longestWait, lastChance = 300, 300
	// longestDelay is the longest time, in seconds, before a failed transfer is tried again.
	longestDelay = 3600
	// keep is for how many seconds ended transfers stay stored.
	keep = 30 * 24 * 3600
	// renewAhead is the largest number of seconds before a host may remove an image at which the image
	// is requested again for a reservation that relies on it.
	renewAhead = 900
	// lookEvery is the interval, in seconds, in which Almanac reads an image from Glance, and looks
	// the largest number of images that it reads in one step.
	lookEvery, looks = 600, 20
	// fresh is for how many seconds the record of an unused image stays stored.
	fresh = 24 * 3600
	// tidyEvery is the interval, in seconds, in which old transfers are deleted.
	tidyEvery = 3600
)

// repository is the name of the only repository.
const repository = "glance"

// imageOnHost identifies an image on a host.
type imageOnHost struct{ image, host string }

// facts converts the stored records to staging.Facts. hosts are the names of all hosts of the
// inventory.
func (r *Rules) facts(s *Stored, hosts []string, now span.Instant) *staging.Facts {
	f := &staging.Facts{
		Site: staging.Site{
			Strategy: r.Strategy, Repositories: []staging.Repository{{Name: repository, Rate: Rate(r.Rate, s.Transfers)}},
			Limit: r.Limit, Margin: r.Margin + int64(r.Poll/time.Second), Lifetime: r.Lifetime,
		},
		Images: map[string]staging.Image{}, Pools: map[string][]staging.Entry{},
	}
	if r.Link > 0 {
		f.Site.Links = make(map[string]float64, len(hosts))
		for _, host := range hosts {
			f.Site.Links[host] = r.Link
		}
	}
	for _, i := range s.Images {
		f.Images[i.ID] = staging.Image{ID: i.ID, Size: i.Bytes}
	}
	coming := map[imageOnHost]bool{}
	for i := range s.Transfers {
		if t := &s.Transfers[i]; t.Outcome == "" {
			coming[imageOnHost{t.Image, t.Host}] = true
			f.Running = append(f.Running, r.running(t, now))
		}
	}
	for _, c := range s.Cached {
		if !coming[imageOnHost{c.Image, c.Host}] {
			f.Pools[c.Host] = append(f.Pools[c.Host], staging.Entry{
				Image: staging.Image{ID: c.Image, Size: c.Bytes}, From: c.Since, Expire: r.gone(c), Lasting: r.Lifetime == 0,
			})
		}
	}
	return f
}

// running converts a transfer under way. If it is overdue, its expected end is the next step.
func (r *Rules) running(t *Transfer, now span.Instant) staging.Transfer {
	end := max(t.Expected, now.Add(int64(r.Poll/time.Second)+1))
	if t.Expected > now {
		end = t.Expected
	}
	return staging.Transfer{
		ID: t.ID, Image: staging.Image{ID: t.Image, Size: t.Bytes}, Node: t.Host, Repository: repository,
		Seconds: int64(end - t.Started), Deadline: t.Deadline, Started: true, Start: t.Started, End: end, Expire: t.Expire,
	}
}

// gone returns when the cloud may remove an image from a host if no instance uses it.
func (r *Rules) gone(c Cached) span.Instant {
	if r.Lifetime == 0 {
		return span.Forever
	}
	return c.LastUsed.Add(r.Lifetime)
}

// waiting returns the reservations that need images and have not begun, in the order in which they
// were made.
func waiting(live []reservation.Reservation, now span.Instant) []reservation.Reservation {
	var list []reservation.Reservation
	for _, r := range live {
		if r.Image != "" && r.Status == reservation.Pending && r.Span.Start > now {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b reservation.Reservation) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	return list
}
