// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// Blazar are the dependencies and settings of the calls that have Blazar's form.
type Blazar struct {
	Leases reservation.LeaseReader
	// BeforeEnd is the default of before_end_date: how many seconds before its end the owner of a
	// lease is warned; 0 means never.
	BeforeEnd int64
	// ListAllForAdmin is true if an admin's list has the leases of all projects, even without the
	// parameter all_tenants.
	ListAllForAdmin bool
	// OnlyEnrolled is true if the calls for hosts are about the hosts of the pool only, as those of
	// Blazar are; otherwise about all.
	OnlyEnrolled bool
	// PoolChanged waits, within limits, until the cloud shows a change of the pool, as Blazar's clients
	// expect; nil if nothing there depends on the pool.
	PoolChanged func(ctx context.Context)
	// Nova is nil without a cloud.
	Nova CallersNova
	// Addresses is the pool of floating IPs, and Neutron has their networks; both are nil without a
	// Neutron.
	Addresses AddressPool
	Neutron   Neutron
	// NewID returns a new id for a reservation or a floating IP.
	NewID func() string
}

// blazarPaths are the first parts of the paths that have Blazar's form, below /v1.
// Clients ask for the last two too, which Almanac does not serve.
var blazarPaths = []string{"/leases", "/os-hosts", "/floatingips", "/networks", "/devices"}

// inBlazarsForm reports whether the answer to a request must have Blazar's form. That is so without
// /v1 too: a client asks there if the URL in the catalog lacks it, and shows the error.
func inBlazarsForm(c *gin.Context) bool { return blazarForm(c.Request) }

func blazarForm(r *http.Request) bool {
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	return slices.ContainsFunc(blazarPaths, func(root string) bool {
		rest, below := strings.CutPrefix(path, root)
		return below && (rest == "" || rest[0] == '/')
	})
}

// The microversions. 1.0 is Blazar's, and the default for ever; 1.1 has what only Almanac offers.
const (
	microversionHeader = "OpenStack-API-Version"
	microversionKey    = "microversion"
	oldestMinor        = 0
	latestMinor        = 1
)

// microversionForm is how Blazar accepts a microversion (blazar/api/v1/api_version_request.py).
var microversionForm = regexp.MustCompile(`^([1-9][0-9]*)\.(0|[1-9][0-9]*)$`)

// microversion reads the microversion that a request asks for and names it in the answer, which depends on it. Parts of
// the header that are about other services do not count.
func (s *server) microversion(c *gin.Context) {
	minor, err := minorVersion(c.Request.Header.Values(microversionHeader))
	if err == errNotAcceptable {
		s.failWith(c, http.StatusNotAcceptable, fault.New(fault.Invalid,
			"this version of the API is not supported; the oldest is 1.%d, the newest is 1.%d", oldestMinor, latestMinor))
		return
	}
	if err != nil {
		s.fail(c, err)
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
			return 0, fault.New(fault.Invalid, "%s must be such as \"reservation 1.1\", not %q", microversionHeader, shorten([]byte(part)))
		}
		if words[1] == "latest" {
			return latestMinor, nil
		}
		form := microversionForm.FindStringSubmatch(words[1])
		if form == nil {
			return 0, fault.New(fault.Invalid, "%s must be such as \"reservation 1.1\", not %q", microversionHeader, shorten([]byte(part)))
		}
		minor, err := strconv.Atoi(form[2])
		if form[1] != "1" || err != nil || minor < oldestMinor || minor > latestMinor {
			return 0, errNotAcceptable
		}
		return minor, nil
	}
	return oldestMinor, nil
}

// extended reports whether a request asks for what only Almanac offers: microversion 1.1.
func extended(c *gin.Context) bool { return c.GetInt(microversionKey) >= 1 }

// blazarBody returns the body of a request, an object of at most `most` bytes.
func (s *server) blazarBody(c *gin.Context, most int64) (blazar.Object, error) {
	raw, err := s.rawBody(c, most)
	if err != nil {
		return nil, err
	}
	return blazar.ReadObject(raw)
}

// allow returns Blazar's error unless the rule allows the asker to act on a resource of project.
func allow(c *gin.Context, rule, project string) error {
	if err := asking(c).check(rule, project); err != nil {
		return blazar.NotAllowed(rule, err)
	}
	return nil
}

// allowed admits callers that the rule allows to act on resources of their own project, or on
// resources without a project.
func (s *server) allowed(rule string) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := allow(c, rule, asking(c).ProjectID); err != nil {
			s.fail(c, err)
		}
	}
}
