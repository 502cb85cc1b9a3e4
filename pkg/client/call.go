// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

const (
	requestIDHeader = "X-Openstack-Request-Id"

	// The client repeats a call at most this often. It waits firstWait before the first
	// repetition and doubles the wait each time, or waits as long as Almanac asks. It does not
	// repeat a call for which Almanac asks to wait longer than longestWait: that is the
	// caller's decision.
	repeats     = 3
	firstWait   = 100 * time.Millisecond
	longestWait = 30 * time.Second
)

// call is one call of the API.
type call struct {
	method string
	path   string // begins with a slash
	// id or name selects a member of the collection at path; nil is the collection itself.
	id, name *string
	query    url.Values
	body     any        // nil sends none
	key      string     // idempotency key
	into     any        // receives the decoded answer; nil discards it
	at       *time.Time // receives the service's time; nil discards it
	// reports decodes an answer with a status of 400 or more too, as far as possible.
	reports bool
}

// answer makes a call and returns the decoded answer.
func answer[T any](ctx context.Context, c *Client, do call) (T, error) {
	var into T
	do.into = &into
	err := c.do(ctx, do)
	return into, err
}

// member adds the selected member to the path. A name that would make it the path of
// something else is an Invalid fault.
func (do *call) member() error {
	field, name := "id", do.id
	if do.name != nil {
		field, name = "name", do.name
	}
	switch {
	case name == nil:
		return nil
	case *name == "":
		return fault.Field(field, "must not be empty")
	case *name == "." || *name == "..":
		return fault.Field(field, "must not be %q", *name)
	}
	do.path += "/" + url.PathEscape(*name)
	return nil
}

// do makes a call, and repeats it where that is safe and can help.
func (c *Client) do(ctx context.Context, do call) error {
	if err := do.member(); err != nil {
		return err
	}
	var body []byte
	if do.body != nil {
		var err error
		if body, err = json.Marshal(do.body); err != nil {
			return fmt.Errorf("encode the body of %s %s: %w", do.method, do.path, err)
		}
	}
	id := ""
	if c.options.RequestID != nil {
		id = c.options.RequestID()
	}
	for attempt := 0; ; attempt++ {
		err := c.send(ctx, do, body, id)
		pause, again := do.pause(err, attempt)
		if !again {
			return err
		}
		if waited := c.options.Wait(ctx, pause); waited != nil {
			return fmt.Errorf("%w, before another try: %w", waited, err)
		}
	}
}

// pause reports whether to repeat the call after an attempt, counted from 0, failed with err,
// and returns how long to wait before that.
func (do call) pause(err error, attempt int) (time.Duration, bool) {
	failed, ok := errors.AsType[*Error](err)
	slowDown := ok && failed.Status == http.StatusTooManyRequests // Almanac did nothing
	safe := do.method == http.MethodGet || do.key != "" || slowDown
	if !ok || !safe || attempt == repeats || failed.Timeout() {
		return 0, false
	}
	pause := firstWait << attempt
	switch {
	case failed.Status == 0:
		return pause, true
	case (slowDown || failed.Status == http.StatusServiceUnavailable) && failed.RetryAfter > 0:
		return max(pause, failed.RetryAfter), failed.RetryAfter <= longestWait
	default:
		return 0, false
	}
}

// send sends the call once and decodes the answer.
func (c *Client) send(ctx context.Context, do call, body []byte, id string) error {
	req, err := c.request(ctx, do, body, id)
	if err != nil {
		return err
	}
	answer, err := c.options.HTTPClient.Do(req)
	if err != nil {
		return c.unanswered(ctx, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return c.unanswered(ctx, err)
	}
	if answer.StatusCode >= 400 {
		if do.reports {
			_ = json.Unmarshal(text, do.into) // failure describes what this cannot read
		}
		return failure(c.base, answer, text)
	}
	if c.tag != nil {
		*c.tag = answer.Header.Get("ETag")
	}
	if do.at != nil {
		*do.at, err = http.ParseTime(answer.Header.Get("Date"))
	}
	if err == nil && do.into != nil {
		err = json.Unmarshal(text, do.into)
	}
	if err != nil {
		return &Error{
			Status:    answer.StatusCode,
			Kind:      fault.Unavailable,
			RequestID: answer.Header.Get(requestIDHeader),
			Message:   fmt.Sprintf("%s answered %s %s, but not as Almanac does: %v", c.base, do.method, do.path, err),
		}
	}
	return nil
}

// request returns the HTTP request of a call, with token, idempotency key, expected tag and request id.
func (c *Client) request(ctx context.Context, do call, body []byte, id string) (*http.Request, error) {
	address := c.base + do.path
	if len(do.query) > 0 {
		address += "?" + do.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, do.method, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", do.method, do.path, err)
	}
	token := ""
	if c.options.Token != nil {
		if token, err = c.options.Token(ctx); err != nil {
			return nil, fmt.Errorf("get a token: %w", err)
		}
	}
	contentType := ""
	if body != nil {
		contentType = "application/json"
	}
	expected := ""
	if do.method == http.MethodPatch || do.method == http.MethodDelete {
		expected = c.expected
	}
	for name, value := range map[string]string{
		"Accept":          "application/json",
		"Content-Type":    contentType,
		"Idempotency-Key": do.key,
		"If-Match":        expected,
		"User-Agent":      c.options.UserAgent,
		"X-Auth-Token":    token,
		requestIDHeader:   id,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	return req, nil
}

// unanswered distinguishes a caller that canceled the call from an Almanac that does not
// answer.
func (c *Client) unanswered(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return noAnswer(c.base, err)
}

func set(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

func setFlag(query url.Values, name string, value bool) {
	if value {
		query.Set(name, "true")
	}
}

func setNumber(query url.Values, name string, n int) {
	if n != 0 {
		query.Set(name, strconv.Itoa(n))
	}
}

func setTime(query url.Values, name string, t time.Time) {
	if !t.IsZero() {
		query.Set(name, t.UTC().Format(time.RFC3339))
	}
}

func dryRun() url.Values { return url.Values{"dry_run": {"true"}} }

// pages returns the elements of a list. It fetches a page when its first element is needed,
// and ends after an error. read returns the elements of a page, and the marker of the next.
func pages[P, T any](
	ctx context.Context, c *Client, path string, query url.Values, size int, read func(page P) (elements []T, next string),
) iter.Seq2[T, error] {
	return pagesBy(ctx, c, "marker", path, query, size, read)
}

// pagesBy is pages for a list that continues at another parameter of the query than marker.
func pagesBy[P, T any](
	ctx context.Context, c *Client, marker, path string, query url.Values, size int, read func(page P) (elements []T, next string),
) iter.Seq2[T, error] {
	setNumber(query, "limit", size)
	return func(yield func(T, error) bool) {
		query := maps.Clone(query)
		for {
			page, err := answer[P](ctx, c, call{method: http.MethodGet, path: path, query: query})
			elements, next := read(page)
			if err == nil && next != "" && next == query.Get(marker) {
				err = fmt.Errorf("the page after %s begins with itself", next)
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, element := range elements {
				if !yield(element, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			query.Set(marker, next)
		}
	}
}
