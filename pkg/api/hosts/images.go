// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// Images serves the list of the images on hosts and on their way there.
type Images struct {
	// Overview returns them; nil means that no images are staged.
	Overview func() []controller.Overview
}

// list handles GET /v1/images.
func (s Images) list(c *serving.Call) (any, error) {
	q := c.Parameters("image", "host", "state")
	image, host, states := q.Text("image"), q.Text("host"), q.List("state")
	for _, state := range states {
		if !slices.Contains(controller.States, controller.State(state)) {
			q.Fail("state", "must be one of %v, not %q", controller.States, state)
		}
	}
	if q.Err != nil {
		return nil, q.Err
	}
	page := v1.Images{Images: []v1.Image{}}
	if s.Overview != nil {
		for _, o := range s.Overview() {
			if image != "" && image != o.Image && image != o.Name || host != "" && host != o.Host ||
				len(states) > 0 && !slices.Contains(states, string(o.State)) {
				continue
			}
			page.Images = append(page.Images, v1.Image{
				ID: o.Image, Name: o.Name, Host: o.Host, Bytes: o.Bytes, State: string(o.State), Start: v1.TimeOf(o.Start), End: v1.TimeOf(o.End),
				KeptUntil: v1.TimeOf(o.Until), Detail: o.Detail, Reservations: append([]string{}, o.Reservations...),
			})
		}
	}
	return page, nil
}
