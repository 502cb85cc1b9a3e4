// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"cmp"
	"context"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/reservation"
)

// resolve returns the request with the image's id. It calls Glance, so it runs before any
// decision.
func (s API) resolve(ctx context.Context, r reservation.Request, project string) (reservation.Request, error) {
	if s.Images == nil || r.Image == "" {
		return r, nil
	}
	var err error
	r.Image, err = s.Images.Resolve(ctx, r.Image, project)
	return r, err
}

// withImages adds the state of the image on each host. For callers that may not see the hosts yet,
// it omits their names and details.
func (s API) withImages(out v1.Reservation, r reservation.Reservation, by *serving.Asker) v1.Reservation {
	if s.Images == nil {
		return out
	}
	sees := by.SeesHosts(&r)
	for _, h := range s.Images.Of(&r) {
		one := v1.HostImage{Host: h.Host, State: string(h.State), Start: v1.TimeOf(h.Start), End: v1.TimeOf(h.End), Detail: h.Detail}
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
