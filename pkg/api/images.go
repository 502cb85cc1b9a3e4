// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// Images stages the images of reservations on their hosts; *controller.Controller implements it.
type Images interface {
	// Resolve returns the id of the image that a user of a project names by id or name. Its faults
	// are Invalid on field image, or Unavailable.
	Resolve(ctx context.Context, text, project string) (id string, err error)
	// Of returns the state of a reservation's image on each of its hosts.
	Of(r *reservation.Reservation) []controller.HostImage
	// Overview returns the images on hosts and on their way.
	Overview() []controller.Overview
}

// resolve returns the request with the image's id. It calls Glance, so it runs before any
// decision.
func (s *server) resolve(ctx context.Context, r reservation.Request, project string) (reservation.Request, error) {
	if s.Images == nil || r.Image == "" {
		return r, nil
	}
	var err error
	r.Image, err = s.Images.Resolve(ctx, r.Image, project)
	return r, err
}

// withImages adds the state of the image on each host. For callers that may not see the hosts yet,
// it omits their names and details.
func (s *server) withImages(out v1.Reservation, r reservation.Reservation, by *asker) v1.Reservation {
	if s.Images == nil {
		return out
	}
	sees := seesHosts(&r, by)
	for _, h := range s.Images.Of(&r) {
		one := v1.HostImage{Host: h.Host, State: string(h.State), Start: moment(h.Start), End: moment(h.End), Detail: h.Detail}
		if !sees {
			one.Host, one.Detail = "", ""
		}
		out.Images = append(out.Images, one)
	}
	if !sees {
		slices.SortStableFunc(out.Images, func(a, b v1.HostImage) int { return cmp.Compare(a.State, b.State) })
	}
	return out
}

// moment returns the time of an instant; nil for 0 and Forever.
func moment(at span.Instant) *time.Time {
	if at == 0 || at >= span.Forever {
		return nil
	}
	return new(at.Time())
}

// listImages handles GET /v1/images.
func (s *server) listImages(c *gin.Context) (any, error) {
	q := readQuery(c, "image", "host", "state")
	image, host, states := q.text("image"), q.text("host"), q.list("state")
	for _, state := range states {
		if !slices.Contains(controller.States, controller.State(state)) {
			q.fail("state", "must be one of %v, not %q", controller.States, state)
		}
	}
	if q.err != nil {
		return nil, q.err
	}
	page := v1.Images{Images: []v1.Image{}}
	if s.Images != nil {
		for _, o := range s.Images.Overview() {
			if image != "" && image != o.Image && image != o.Name || host != "" && host != o.Host ||
				len(states) > 0 && !slices.Contains(states, string(o.State)) {
				continue
			}
			page.Images = append(page.Images, v1.Image{
				ID: o.Image, Name: o.Name, Host: o.Host, Bytes: o.Bytes, State: string(o.State), Start: moment(o.Start), End: moment(o.End),
				KeptUntil: moment(o.Until), Detail: o.Detail, Reservations: append([]string{}, o.Reservations...),
			})
		}
	}
	return page, nil
}
