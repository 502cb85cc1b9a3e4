package keystone

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Answer is an answer of Keystone that was not the one asked for.
type Answer struct {
	Status      int
	Method, URL string
	// Message is Keystone's own, shortened.
	Message    string
	RetryAfter time.Duration // 0 where it does not say
}

func (a *Answer) Error() string {
	text := fmt.Sprintf("keystone answered %d to %s %s", a.Status, a.Method, a.URL)
	if a.Message != "" {
		text += ": " + a.Message
	}
	return text
}

// longestMessage is how much of Keystone's message is kept: a proxy in front of
// it may send a page.
const longestMessage = 200

// told turns gophercloud's error for an unexpected status into an Answer.
func told(err error) error {
	unexpected, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err)
	if !ok {
		return err
	}
	a := &Answer{Status: unexpected.Actual, Method: unexpected.Method, URL: unexpected.URL}
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(unexpected.Body, &body) == nil {
		a.Message = body.Error.Message[:min(len(body.Error.Message), longestMessage)]
	}
	if seconds, err := strconv.Atoi(unexpected.ResponseHeader.Get("Retry-After")); err == nil && seconds > 0 {
		a.RetryAfter = time.Duration(seconds) * time.Second
	}
	return a
}

func status(err error) int {
	if a, ok := errors.AsType[*Answer](err); ok {
		return a.Status
	}
	return 0
}

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
	a, ok := errors.AsType[*Answer](err)
	if ok && a.RetryAfter > 0 {
		f.RetryAfter = min(a.RetryAfter, longestRetry)
	}
	if ok && a.Status == http.StatusForbidden {
		f.Err = fmt.Errorf("the user of [keystone_authtoken] may not validate tokens; give it the role service or admin: %w", err)
	}
	return f
}
