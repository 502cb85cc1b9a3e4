// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/precondition"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

const (
	versionKey  = "version"
	expectedKey = "expected versions"
)

// SetVersion states the version of the one object that the answer shows: the answer gets a tag with it.
func (c *Call) SetVersion(version string) { c.Set(versionKey, version) }

// Expected returns which versions of what it changes the request expects.
func (c *Call) Expected() precondition.Versions {
	expected, _ := c.Get(expectedKey)
	v, _ := expected.(precondition.Versions)
	return v
}

// Expect fails with a Precondition fault if the request expects another version of what it changes. It may be another one
// again when the change is stored, so the version is compared there too.
func (c *Call) Expect(what, version string) error {
	if c.Expected().Met(version) {
		return nil
	}
	return fault.Changed(what)
}

// ChangerOf returns the sender of the request as a booking.Caller that changes a reservation or a lease, with the
// versions that the request expects.
func ChangerOf(c *Call, what owned) booking.Caller {
	by := c.Asker().CallerFor(what)
	by.Expected = c.Expected()
	return by
}

// ExpectedHost returns what allows a change of a host: it fails with a Precondition fault if the request expects another
// version of it. nil means that the request expects nothing.
func ExpectedHost(c *Call, name string) func(before, after *inventory.Snapshot) error {
	if c.Expected().Any() {
		return nil
	}
	return func(before, _ *inventory.Snapshot) error {
		i, there := before.Index(name)
		if !there {
			return fault.Changed("host")
		}
		return c.Expect("host", c.Asker().SightOf(before).HostVersion(before.Host(i)))
	}
}

// readExpected reads the header If-Match of a change.
func readExpected(c *Call) {
	v, is := precondition.Parse(c.Request.Header.Values("If-Match"))
	if !is {
		c.Fail(fault.Field("If-Match", `must be "*" or the ETags of earlier answers, in their quotes, such as "7-0123456789abcdef"`))
		return
	}
	c.Set(expectedKey, v)
}

// sendTagged sends an answer with its tag, or tells that the client has it already.
func sendTagged(c *Call, version string, answer any) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		c.Fail(err)
		return
	}
	tag := precondition.Tag(version, text.Bytes())
	c.Header("ETag", tag)
	if reads := c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead; reads && c.Holds(tag) {
		c.Status(http.StatusNotModified)
		return
	}
	c.Data(c.Writer.Status(), contentType(c), text.Bytes())
}
