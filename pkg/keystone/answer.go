package keystone

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// told turns gophercloud's error for an unexpected status into an *openstack.Answer.
func told(err error) error { return openstack.AsAnswer("keystone", err) }

const (
	unavailable = "Keystone cannot say who you are at the moment; try again"
	// usualRetry is when to try again where Keystone does not say, longestRetry
	// the longest that it may say.
	usualRetry   = 5 * time.Second
	longestRetry = 5 * time.Minute
)

// away is what the caller is told when Keystone gave no verdict on the token.
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
		f.Err = fmt.Errorf("the user of [keystone_authtoken] may not validate tokens; give it the role service or admin: %w", err)
	}
	return f
}
