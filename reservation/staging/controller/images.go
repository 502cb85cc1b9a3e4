// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Resolve returns the id of the image that a user of a project means by an id or a name, and stores
// the image. Its faults are Invalid with the field image, or Unavailable. Without Glance it returns
// the text unchanged: the reservation keeps it, and no image is put on hosts.
func (c *Controller) Resolve(ctx context.Context, text, project string) (id string, err error) {
	if text == "" {
		return "", nil
	}
	i, err := c.Glance.Find(ctx, text, project)
	if errors.Is(err, ErrNoGlance) {
		if now := c.Now(); span.Instant(c.Known.glanceless.Swap(int64(now))).Add(2*lookEvery) < now {
			c.Log.WarnContext(ctx, "putting no images of reservations on hosts: there is no Glance in the catalog")
		}
		return text, nil
	}
	if err != nil {
		return "", err
	}
	if most := c.Rules.Limit; most > 0 && i.Bytes > most {
		return "", fault.Field("image", "the image has %d bytes, and a host keeps %d bytes of images at most ([staging] pool_limit)", i.Bytes, most)
	}
	i.Looked = c.Now()
	c.mu.Lock()
	known := slices.ContainsFunc(c.stored.Images, func(o Image) bool {
		return o.ID == i.ID && o.Name == i.Name && o.Bytes == i.Bytes && !o.Gone && o.Looked > i.Looked.Add(-lookEvery)
	})
	c.mu.Unlock()
	if known {
		return i.ID, nil
	}
	change := Change{Images: []Image{i}}
	if err := c.Records.ChangeStagedImages(ctx, job.Lease{}, change); err != nil {
		return "", err
	}
	c.learn(change)
	return i.ID, nil
}

// learn adds to the facts what was stored outside a step.
func (c *Controller) learn(change Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored.Apply(change)
	c.generation++
	c.Known.facts.Store(c.Rules.facts(&c.stored, c.hostNames(), c.Now()))
}

// Overview describes one image on one host.
type Overview struct {
	Image, Name, Host string
	Bytes             int64
	HostImage
	Reservations []string
	// Until is when the host may remove the image if no instance uses it.
	Until span.Instant
}

// Overview returns the images on hosts and the transfers under way, sorted by image and host.
func (c *Controller) Overview() []Overview {
	p := c.latest(nil)
	if p == nil {
		return nil
	}
	all := map[imageOnHost]Overview{}
	enter := func(at imageOnHost, bytes int64, h HostImage, until span.Instant) {
		h.Host = at.host
		all[at] = Overview{Image: at.image, Name: p.images[at.image].Name, Host: at.host, Bytes: bytes, HostImage: h, Reservations: p.users[at], Until: until}
	}
	for _, one := range p.there {
		enter(imageOnHost{one.Image, one.Host}, one.Bytes, HostImage{State: Present, Start: one.Since}, c.Rules.gone(one))
	}
	for at, t := range p.at {
		h := HostImage{State: Scheduled, Start: t.Start, End: t.End}
		if t.Started {
			h.State = Transferring
		}
		if t.End > t.Deadline {
			h.State = Late
		}
		enter(at, t.Image.Size, h, 0)
	}
	for at, why := range p.held {
		h := HostImage{State: Held, Detail: why.reason}
		if why.failed {
			h.State = Refused
		}
		enter(at, p.images[at.image].Bytes, h, 0)
	}
	list := make([]Overview, 0, len(all))
	for _, one := range all {
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Overview) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Image, b.Image), cmp.Compare(a.Host, b.Host))
	})
	return list
}
