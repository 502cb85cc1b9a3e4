// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Error is an answer with a status of 400 or more, or the lack of an answer.
type Error struct {
	// Status is the HTTP status; 0 if there is no answer.
	Status int
	// Kind, Field, Message and RequestID come from the answer. Kind is Unavailable if the
	// answer is not Almanac's, or if there is none.
	Kind      fault.Kind
	Field     string
	Message   string
	RequestID string
	// Refusal explains why there is no capacity; nil if the answer has none.
	Refusal *v1.Refusal
	// RetryAfter is how long Almanac asks to wait; 0 if it does not ask.
	RetryAfter time.Duration
	// Err is why there is no answer; nil if there is one.
	Err error
}

func (e *Error) Error() string {
	text := e.Message
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	if e.Kind == fault.Internal && e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether the timeout of the HTTP client or of the context passed without an
// answer.
func (e *Error) Timeout() bool {
	cause, ok := errors.AsType[net.Error](e.Err)
	return ok && cause.Timeout()
}

// noAnswer explains why there is no answer from base.
func noAnswer(base string, err error) *Error {
	e := &Error{Kind: fault.Unavailable, Err: err}
	cause := err
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		cause = wrapped.Err
	}
	switch {
	case e.Timeout():
		e.Message = fmt.Sprintf("%s did not answer in time", base)
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Message = fmt.Sprintf("no Almanac answers at %s; start one with almanacd, or set the URL of a running one", base)
	default:
		e.Message = fmt.Sprintf("no answer from %s: %v", base, cause)
	}
	return e
}

// failure reads an answer with a status of 400 or more.
func failure(base string, answer *http.Response, body []byte) *Error {
	e := &Error{Status: answer.StatusCode, RequestID: answer.Header.Get(requestIDHeader)}
	if seconds, err := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 31); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	var read v1.ErrorAnswer
	if json.Unmarshal(body, &read) != nil || read.Error.Kind == "" {
		e.Kind = fault.Unavailable
		if reasons := unwell(body); len(reasons) > 0 {
			e.Message = fmt.Sprintf("%s answered %s: %s", base, answer.Status, strings.Join(reasons, "; "))
			return e
		}
		e.Message = fmt.Sprintf("%s answered %s, and not as Almanac does; check that it is the URL of Almanac", base, answer.Status)
		if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain") && len(body) < 200 {
			e.Message = fmt.Sprintf("%s answered %s: %s", base, answer.Status, bytes.TrimSpace(body))
		}
		return e
	}
	e.Kind, e.Field, e.Message = fault.Kind(read.Error.Kind), read.Error.Field, read.Error.Message
	e.Refusal = read.Refusal
	if read.Error.RequestID != "" {
		e.RequestID = read.Error.RequestID
	}
	return e
}

// unwell returns the reasons in an answer about Almanac's health or readiness.
func unwell(body []byte) (reasons []string) {
	var read struct {
		Reasons []string `json:"reasons"`
		v1.Readiness
	}
	if json.Unmarshal(body, &read) != nil {
		return nil
	}
	reasons = read.Reasons
	for _, part := range read.Parts {
		if !part.OK {
			reasons = append(reasons, part.Name+": "+part.Reason)
		}
	}
	if read.Draining {
		reasons = append(reasons, "draining")
	}
	return reasons
}
