// SPDX-License-Identifier: Apache-2.0

package calendar

import "github.com/almanac-cloud/almanac/pkg/api/serving"

// show handles GET /v1/calendar.
func (s *API) show(c *serving.Call) {
	v, err := s.view(c)
	if err != nil {
		c.Fail(err)
		return
	}
	v.marks = s.Live.Fingerprint()
	if tag, known := s.tags.Get(v.key()); known && c.Holds(tag) { // nothing at all has changed
		c.Header("ETag", tag)
		c.SendNotModified()
		return
	}
	page, err := s.page(c.Request.Context(), v)
	if err != nil {
		c.Fail(err)
		return
	}
	tag := v.tag(page)
	s.tags.Add(v.key(), tag)
	c.Header("ETag", tag)
	if c.Holds(tag) {
		c.SendNotModified()
	} else if err := c.SendCompressed("application/json; charset=utf-8", page); err != nil {
		c.Fail(err)
	}
}
