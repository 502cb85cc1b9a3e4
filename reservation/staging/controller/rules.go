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
	// Rate is how many bytes a second come from the repository, until it is measured, and Link how
	// many a host receives; 0 is no limit.
	Rate, Link float64
	// Limit bounds the images on a host together, in bytes; 0 is no bound.
	Limit int64
	// Margin is how long before a start its images must be there.
	Margin int64
	// Lifetime is for how long a host keeps an image that nobody uses; 0 is forever.
	Lifetime int64
	// Factor is how many times longer than estimated a transfer may take.
	Factor float64
	// Retries is how often a failed transfer is tried again for a reservation, and RetryDelay the
	// wait before the first retry; it doubles each time.
	Retries    int
	RetryDelay int64
	// Heard reports whether Almanac listens to the cloud's reports. Otherwise a transfer counts as
	// done when its expected time is over.
	Heard bool
	Poll  time.Duration
}

const (
	// slack is how much longer than by Factor a transfer may always take, since the call itself
	// takes a while.
	slack = 60
	// most is how many hosts the calls of one step may have. longCall is how many seconds of
	// transfers a call may have before it accepts no more hosts: transfers under way cannot yield
	// to more urgent ones.
	most, longCall = 32, 120
	// longestWait is the longest wait before the next call after one that did not reach the cloud.
	// lastChance is how long before its last possible moment an abandoned transfer is tried once
	// more.
	longestWait, lastChance = 300, 300
	// longestDelay is the longest wait before a failed transfer is tried again.
	longestDelay = 3600
	// keep is for how long ended transfers stay stored.
	keep = 30 * 24 * 3600
	// lookEvery is how often Almanac asks Glance about an image, and looks for how many images in
	// one step.
	lookEvery, looks = 600, 20
	// fresh is for how long an unused image stays stored.
	fresh = 24 * 3600
	// tidyEvery is how often old transfers are deleted.
	tidyEvery = 3600
)

// repository names the only repository.
const repository = "glance"

// place is an image on a host.
type place struct{ image, host string }

// facts converts the stored rows to package staging's facts. hosts are all hosts of the inventory.
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
	coming := map[place]bool{}
	for i := range s.Transfers {
		if t := &s.Transfers[i]; t.Outcome == "" {
			coming[place{t.Image, t.Host}] = true
			f.Running = append(f.Running, r.running(t, now))
		}
	}
	for _, c := range s.Cached {
		if !coming[place{c.Image, c.Host}] {
			f.Pools[c.Host] = append(f.Pools[c.Host], staging.Entry{
				Image: staging.Image{ID: c.Image, Size: c.Bytes}, From: c.Since, Expire: r.gone(c),
			})
		}
	}
	return f
}

// running converts a transfer under way. One that is overdue is expected to last until the next
// look.
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

// gone returns when the cloud may remove an unused image from a host.
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
