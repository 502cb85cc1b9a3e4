package controller

import (
	"cmp"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// Rules are what the operator has settled. Times are seconds where they are not durations.
type Rules struct {
	Strategy staging.Strategy
	// Rate is how many bytes a second come from the repository, until it is measured, and
	// Link what a host takes; 0 is whatever comes.
	Rate, Link float64
	// Limit bounds the images on a host together, in bytes; 0 is no bound.
	Limit int64
	// Margin is how long before a start its images are to be there.
	Margin int64
	// Lifetime is for how long a host keeps an image that nobody uses; 0 is for ever.
	Lifetime int64
	// Factor is how many times longer than estimated a transfer may take.
	Factor float64
	// Retries is how often a transfer that has failed is tried again for a reservation, and
	// RetryDelay how long it is waited before the first time; twice as long each time.
	Retries    int
	RetryDelay int64
	// Heard says that what the cloud says is listened to: else a transfer is taken for done
	// when its time is over.
	Heard bool
	Poll  time.Duration
}

const (
	// slack is how much longer than by Factor a transfer may take in any case: it takes a
	// while to ask.
	slack = 60
	// most is how many hosts the calls of one step may have, and longCall how many seconds of
	// transfers a call must have to take no more hosts: what is under way cannot give way to
	// what is more urgent.
	most, longCall = 32, 120
	// longestWait is the longest wait before the cloud is asked again for what it could not be
	// asked for. lastChance is how long before its last moment a transfer is tried once more
	// that was given up.
	longestWait, lastChance = 300, 300
	// longestDelay is the longest wait before a transfer is tried again.
	longestDelay = 3600
	// keep is how long it is kept how a transfer went.
	keep = 30 * 24 * 3600
	// lookEvery is how often Glance is asked again about an image, and looks how many it is
	// asked about in one step.
	lookEvery, looks = 600, 20
	// fresh is for how long an image is remembered that nothing asks for.
	fresh = 24 * 3600
	// tidyEvery is how often transfers of long ago are forgotten.
	tidyEvery = 3600
)

// repository is the name of the only one.
const repository = "glance"

// place is an image on a host.
type place struct{ image, host string }

// facts gives what the stored rows say, as package staging reads it. hosts are all that
// there are.
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

// running gives a transfer under way. One that takes longer than was expected is expected
// to take until the next look.
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

// gone is when the cloud may take an image from a host that nobody uses.
func (r *Rules) gone(c Cached) span.Instant {
	if r.Lifetime == 0 {
		return span.Forever
	}
	return c.LastUsed.Add(r.Lifetime)
}

// waiting are the reservations that are to have images when they begin, in the order in
// which they were made.
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
