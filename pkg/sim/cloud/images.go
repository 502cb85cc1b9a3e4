// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// ImageStore implements controller.ComputeServices and controller.Glance.
type ImageStore struct{ Cloud *Cloud }

// transfer is a call that puts an image on hosts, one after the other.
type transfer struct {
	call, image string
	takes       time.Duration // for each host that does not have the image
	hosts       []string      // that the image has not reached yet
	until       time.Time     // when it reaches the first of them
}

// word is a report about an image that has reached a host, or that cannot.
type word = controller.Word

// Cache implements controller.ComputeServices. Hosts that are down are left out.
func (i ImageStore) Cache(_ context.Context, call, image string, hosts []string) (asked bool, err error) {
	c := i.Cloud
	defer c.enter()()
	found, err := c.image(image)
	if err != nil {
		return false, err
	}
	t := &transfer{call: call, image: found.ID, takes: c.takes(found.Bytes)}
	left := map[string]error{}
	for _, host := range hosts {
		if m := c.machines[host]; m == nil || m.down {
			left[host] = fault.New(fault.Conflict, "host %s does not run", host)
			continue
		}
		t.hosts = append(t.hosts, host)
	}
	if len(t.hosts) > 0 {
		t.until = c.o.Now().Add(c.fetches(t.hosts[0], t.image))
		c.transfers = append(c.transfers, t)
	}
	if len(left) > 0 {
		return len(t.hosts) > 0, &controller.LeftOut{Hosts: left}
	}
	return true, nil
}

// advanceTransfers ends the transfers whose time has come, and reports them.
func (c *Cloud) advanceTransfers(now time.Time) {
	for _, t := range c.transfers {
		for len(t.hosts) > 0 && !t.until.After(now) {
			w := word{Call: t.call, Host: t.hosts[0]}
			if m := c.machines[w.Host]; m == nil || m.down {
				w.Failed = []string{t.image}
			} else {
				m.images[t.image], w.Cached = true, []string{t.image}
			}
			c.words = append(c.words, w)
			if t.hosts = t.hosts[1:]; len(t.hosts) > 0 {
				t.until = t.until.Add(c.fetches(t.hosts[0], t.image))
			}
		}
	}
	c.transfers = slices.DeleteFunc(c.transfers, func(t *transfer) bool { return len(t.hosts) == 0 })
}

// Words returns the reports about images since the last call.
func (i ImageStore) Words() []controller.Word {
	defer i.Cloud.enter()()
	words := i.Cloud.words
	i.Cloud.words = nil
	return words
}

// Clear implements controller.ComputeServices: calls leave nothing behind.
func (i ImageStore) Clear(context.Context) error { return nil }

// IsID implements controller.Glance.
func (i ImageStore) IsID(text string) bool { return placing.IsUUID(text) }

// Find implements controller.Glance. Every project sees all images.
func (i ImageStore) Find(_ context.Context, text, _ string) (controller.Image, error) {
	found, err := i.Cloud.image(text)
	return controller.Image{ID: found.ID, Name: found.Name, Bytes: found.Bytes}, err
}

// Look implements controller.Glance.
func (i ImageStore) Look(_ context.Context, id string) (one controller.Image, gone bool, err error) {
	found, err := i.Cloud.image(id)
	if err != nil {
		return controller.Image{}, true, nil
	}
	return controller.Image{ID: found.ID, Name: found.Name, Bytes: found.Bytes}, false, nil
}
