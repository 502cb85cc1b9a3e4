// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Answer is the error response of a service.
type Answer struct {
	Service     string // "nova"
	Status      int
	Method, URL string
	// Message is the service's own, shortened; Code is Placement's, such as
	// "placement.concurrent_update".
	Message, Code string
	// Methods are Keystone's alternatives for a user who needs several methods of authentication,
	// such as {{"password", "totp"}}, in the answer to one of them.
	Methods    [][]string
	RetryAfter time.Duration // 0 if it has none
}

func (a *Answer) Error() string {
	text := fmt.Sprintf("%s answered %d to %s %s", a.Service, a.Status, a.Method, a.URL)
	if a.Message != "" {
		text += ": " + a.Message
	}
	return text
}

// longestMessage bounds a service's message: a proxy in front of it may send a whole page.
const longestMessage = 200

// AsAnswer converts gophercloud's error for an unexpected status to an *Answer; it returns other
// errors unchanged.
func AsAnswer(service string, err error) error {
	unexpected, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err)
	if !ok {
		return err
	}
	a := &Answer{Service: service, Status: unexpected.Actual, Method: unexpected.Method, URL: unexpected.URL}
	a.Message, a.Code = messageOf(unexpected.Body)
	var receipt struct {
		Methods [][]string `json:"required_auth_methods"`
	}
	if json.Unmarshal(unexpected.Body, &receipt) == nil {
		a.Methods = receipt.Methods
	}
	a.Message = strings.ToValidUTF8(a.Message[:min(len(a.Message), longestMessage)], "")
	if seconds, err := strconv.Atoi(unexpected.ResponseHeader.Get("Retry-After")); err == nil && seconds > 0 {
		a.RetryAfter = time.Duration(seconds) * time.Second
	}
	return a
}

// messageOf returns the message in the body of an error response: Keystone and Nova have {"<what>":
// {"message": …}}, Placement has {"errors": [{"detail": …, "code": …}]}, and Ironic
// {"error_message": {"faultstring": …}}, where older ones encode the inner object as text.
func messageOf(body []byte) (message, code string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return "", ""
	}
	var list []struct{ Detail, Code string }
	if json.Unmarshal(fields["errors"], &list) == nil && len(list) > 0 {
		return strings.TrimSpace(list[0].Detail), list[0].Code
	}
	for _, raw := range fields {
		var inside string
		if json.Unmarshal(raw, &inside) == nil {
			raw = []byte(inside)
		}
		var one struct{ Message, Faultstring string }
		if json.Unmarshal(raw, &one) == nil && one.Message+one.Faultstring != "" {
			return cmp.Or(one.Message, one.Faultstring), ""
		}
	}
	return "", ""
}

// Status returns the HTTP status of the *Answer in err; 0 if there is none.
func Status(err error) int {
	if a, ok := errors.AsType[*Answer](err); ok {
		return a.Status
	}
	return 0
}

// noAnswer reports whether the service could not be reached or closed the connection.
func noAnswer(err error) bool {
	_, ok := errors.AsType[net.Error](err) // *url.Error is one, too
	return ok
}

// kinds maps statuses to faults; other statuses are Unavailable.
var kinds = map[int]fault.Kind{
	http.StatusBadRequest:      fault.Invalid,
	http.StatusUnauthorized:    fault.Denied,
	http.StatusForbidden:       fault.Denied,
	http.StatusNotFound:        fault.NotFound,
	http.StatusConflict:        fault.Conflict,
	http.StatusTooManyRequests: fault.TooMany,
}

// explain converts an error while doing something to a fault.
func (s *Service) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, ours := errors.AsType[*fault.Error](err); ours {
		return fmt.Errorf("%s: %w", doing, unwrapped(err))
	}
	f := &fault.Error{Kind: fault.Unavailable, Err: err}
	answer, answered := errors.AsType[*Answer](err)
	switch {
	case answered:
		if kind, known := kinds[answer.Status]; known {
			f.Kind = kind
		}
		f.Message, f.RetryAfter = answer.sentence(), answer.RetryAfter
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), noAnswer(err):
		f.Message = s.kind.Name + " does not answer"
	default:
		f.Message = "the answer of " + s.kind.Name + " is invalid"
	}
	return fmt.Errorf("%s: %w", doing, f)
}

// unwrapped removes the errors of net/http around a fault.
func unwrapped(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return outer.Err
	}
	return err
}

// sentence returns the user's explanation of the answer.
func (a *Answer) sentence() string {
	switch a.Status {
	case http.StatusUnauthorized:
		return a.Service + " does not accept the token of Almanac's service user"
	case http.StatusForbidden:
		return a.Service + " does not allow this to Almanac's service user"
	case http.StatusNotFound:
		return a.Service + " does not know it"
	case http.StatusConflict:
		return a.Service + " refuses it because of a conflict with the present state"
	case http.StatusBadRequest:
		return a.Service + " rejects the request as invalid"
	case http.StatusTooManyRequests:
		return a.Service + " receives too many requests"
	}
	return a.Service + " failed to process the request"
}

// Malformed returns the fault for a response with the right status and invalid content.
func (s *Service) Malformed(doing, format string, args ...any) error {
	return s.explain(doing, fmt.Errorf(format, args...))
}
