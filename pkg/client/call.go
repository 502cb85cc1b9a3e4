package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

const (
	requestIDHeader = "X-Openstack-Request-Id"

	// A call is repeated at most so often, after waits that begin at firstWait and
	// double, or as long as Almanac asks for. It is not repeated where Almanac asks
	// for more than longestWait: the caller should decide on that.
	repeats     = 3
	firstWait   = 100 * time.Millisecond
	longestWait = 30 * time.Second
)

// call is one call of the API.
type call struct {
	method string
	path   string // begins with a slash
	query  url.Values
	body   any    // nil sends none
	key    string // idempotency key
	into   any    // where the answer is decoded to; nil discards it
	// reports says that an answer from 400 on is decoded too, as far as it goes.
	reports bool
}

// do carries a call out, repeating it where that is safe and may help.
func (c *Client) do(ctx context.Context, do call) error {
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

// pause says whether to repeat the call after its attempt number so (from 0)
// gave err, and how long to wait before.
func (do call) pause(err error, attempt int) (time.Duration, bool) {
	failed, ok := errors.AsType[*Error](err)
	slowDown := ok && failed.Status == http.StatusTooManyRequests // nothing was done
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
			_ = json.Unmarshal(text, do.into) // what it is not, the failure tells
		}
		return failure(c.base, answer, text)
	}
	if do.into == nil {
		return nil
	}
	if err := json.Unmarshal(text, do.into); err != nil {
		return &Error{
			Status:    answer.StatusCode,
			Kind:      fault.Unavailable,
			RequestID: answer.Header.Get(requestIDHeader),
			Message:   fmt.Sprintf("%s answered %s %s, but not as Almanac does: %v", c.base, do.method, do.path, err),
		}
	}
	return nil
}

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
	for name, value := range map[string]string{
		"Accept":          "application/json",
		"Content-Type":    contentType,
		"Idempotency-Key": do.key,
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

// unanswered tells a caller who gave up from an Almanac that does not answer.
func (c *Client) unanswered(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return noAnswer(c.base, err)
}
