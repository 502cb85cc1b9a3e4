// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// observe reads from Glance the images that reservations need and whose records are old. It stops
// when Glance does not answer: earlier facts stay valid, and the next step begins with another
// image. news is true if an image has changed.
func (c *Controller) observe(ctx context.Context, s *Stored, live []reservation.Reservation, now span.Instant) (change Change, news bool, err error) {
	if c.Known.withoutGlance(now) {
		return change, false, nil
	}
	ctx, done := context.WithTimeout(ctx, lookTimeout)
	defer done()
	known := imagesByID(s)
	for _, id := range c.stale(known, live, now) {
		found, gone, err := c.Glance.Look(ctx, id)
		if errors.Is(err, ErrNoGlance) {
			c.Known.glanceless.Store(int64(now))
			return change, news, nil
		}
		if err != nil {
			c.unanswered = id
			return change, news, fmt.Errorf("read the images of reservations: %w", err)
		}
		before, had := known[id]
		if gone {
			found = before
			found.ID, found.Gone = id, true
		}
		found.Looked = now
		before.Looked = now
		news = news || !had || found != before
		change.Images = append(change.Images, found)
	}
	return change, news, nil
}

// stale returns the ids of the images to read from Glance now. The one about which Glance did not
// answer last time comes last.
func (c *Controller) stale(known map[string]Image, live []reservation.Reservation, now span.Instant) (ids []string) {
	seen := map[string]bool{}
	for _, r := range waiting(live, now) {
		if i, there := known[r.Image]; !seen[r.Image] && (!there || i.Looked <= now.Add(-lookEvery)) {
			ids = append(ids, r.Image)
		}
		seen[r.Image] = true
	}
	slices.SortStableFunc(ids, func(a, b string) int {
		switch c.unanswered {
		case a:
			return 1
		case b:
			return -1
		}
		return 0
	})
	return ids[:min(len(ids), looks)]
}

// live returns the live reservations whose image can be in Glance.
func (c *Controller) live() []reservation.Reservation {
	all := c.Promises.Live(span.Span{Start: c.Now(), End: span.Forever})
	live := make([]reservation.Reservation, 0, len(all))
	for _, r := range all {
		if r.Image != "" && c.Glance.IsID(r.Image) {
			live = append(live, r)
		}
	}
	return live
}

func imagesOf(live []reservation.Reservation) map[string]bool {
	ids := map[string]bool{}
	for _, r := range live {
		ids[r.Image] = true
	}
	return ids
}

// exists returns a function that reports whether a host is in the cloud. While the inventory is
// untrusted, it reports true for every host.
func (c *Controller) exists(now span.Instant) func(host string) bool {
	if c.Hosts.Untrusted(now) != "" {
		return func(string) bool { return true }
	}
	hosts := c.Hosts.Snapshot()
	return func(name string) bool { _, there := hosts.Index(name); return there }
}

// unready returns a function that returns why a host cannot receive images now; "" if it can.
func (c *Controller) unready() func(host string) string {
	hosts := c.Hosts.Snapshot()
	return func(name string) string {
		i, there := hosts.Index(name)
		if !there {
			return "the host is not in the cloud"
		}
		switch h := hosts.Host(i); {
		case h.Power == inventory.PowerSleeping || h.Power == inventory.PowerWaking:
			return "the host is switched off"
		case h.Failure() != "":
			return h.Failure()
		}
		return ""
	}
}
