// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// The microversions. 1.0 is Blazar's, and the default for ever; 1.1 has what only Almanac offers.
const (
	microversionHeader = "OpenStack-API-Version"
	microversionKey    = "microversion"
	oldestMinor        = 0
	LatestMinor        = 1
)

// microversionForm is how Blazar accepts a microversion (blazar/api/v1/api_version_request.py).
var microversionForm = regexp.MustCompile(`^([1-9][0-9]*)\.(0|[1-9][0-9]*)$`)

// microversion reads the microversion that a request asks for and names it in the answer, which depends on it. Parts of
// the header that are about other services do not count.
func microversion(c *serving.Call) {
	minor, err := minorVersion(c.Request.Header.Values(microversionHeader))
	if err == errNotAcceptable {
		c.FailWith(http.StatusNotAcceptable, fault.New(fault.Invalid,
			"this version of the API is not supported; the oldest is 1.%d, the newest is 1.%d", oldestMinor, LatestMinor))
		return
	}
	if err != nil {
		c.Fail(err)
		return
	}
	c.Set(microversionKey, minor)
	c.Header(microversionHeader, "reservation 1."+strconv.Itoa(minor))
}

var errNotAcceptable = fault.New(fault.Invalid, "not acceptable")

// minorVersion returns the minor part of the version in the values of the header. It fails with
// errNotAcceptable for a version that is not supported.
func minorVersion(values []string) (int, error) {
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		words := strings.Fields(part)
		if len(words) == 0 || words[0] != "reservation" {
			continue
		}
		if len(words) != 2 {
			return 0, fault.New(fault.Invalid, "%s must be such as \"reservation 1.1\", not %q", microversionHeader, serving.Shorten([]byte(part)))
		}
		if words[1] == "latest" {
			return LatestMinor, nil
		}
		form := microversionForm.FindStringSubmatch(words[1])
		if form == nil {
			return 0, fault.New(fault.Invalid, "%s must be such as \"reservation 1.1\", not %q", microversionHeader, serving.Shorten([]byte(part)))
		}
		minor, err := strconv.Atoi(form[2])
		if form[1] != "1" || err != nil || minor < oldestMinor || minor > LatestMinor {
			return 0, errNotAcceptable
		}
		return minor, nil
	}
	return oldestMinor, nil
}

// extended reports whether a request asks for what only Almanac offers: microversion 1.1.
func extended(c *serving.Call) bool { return c.GetInt(microversionKey) >= 1 }
