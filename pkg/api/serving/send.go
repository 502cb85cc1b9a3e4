// SPDX-License-Identifier: Apache-2.0

package serving

import v1 "github.com/almanac-cloud/almanac/pkg/api/v1"

// hasForm reports whether the answer has the form of another service.
func (c *Call) hasForm() bool { return c.server.Form.Has(c.Request) }

// contentType returns the type of an answer in JSON.
func contentType(c *Call) string {
	if c.hasForm() {
		return c.server.Form.ContentType
	}
	return "application/json; charset=utf-8"
}

// Send sends value as JSON.
func (c *Call) Send(status int, value any) {
	c.Header("Content-Type", contentType(c))
	c.PureJSON(status, value)
}

// sendError sends an error and ends the request.
func (c *Call) sendError(status int, answer v1.ErrorAnswer) {
	c.Abort()
	if c.hasForm() {
		c.Send(status, c.server.Form.Error(status, answer))
		return
	}
	c.Send(status, answer)
}
