package keystone

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// told converts gophercloud's error for an unexpected status into an *openstack.Answer.
func told(err error) error { return openstack.AsAnswer("keystone", err) }

const (
	unavailable = "Keystone cannot validate your token at the moment; try again"
	// usualRetry is the Retry-After if Keystone sends none, and longestRetry its maximum.
	usualRetry   = 5 * time.Second
	longestRetry = 5 * time.Minute
)

// away returns the error for a caller whose token Keystone did not validate.
func away(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Unavailable {
		return err
	}
	f := &fault.Error{Kind: fault.Unavailable, Message: unavailable, RetryAfter: usualRetry, Err: err}
	a, ok := errors.AsType[*openstack.Answer](err)
	if ok && a.RetryAfter > 0 {
		f.RetryAfter = min(a.RetryAfter, longestRetry)
	}
	if ok && a.Status == http.StatusForbidden {
		f.Err = fmt.Errorf("the user of [keystone_authtoken] may not validate tokens; assign it the role service or admin: %w", err)
	}
	return f
}
