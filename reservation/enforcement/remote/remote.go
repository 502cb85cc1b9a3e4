// SPDX-License-Identifier: Apache-2.0

// Package remote calls the operator's usage service over HTTP
// (blazar/enforcement/filters/external_service_filter.py).
package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/enforcement"
)

// Options are where the usage service is, and how it is called.
type Options struct {
	// Base is the address to which check-create, check-update and on-end are relative: without a
	// slash at its end, its last part is replaced. An address of one of them comes before it.
	Base                       string
	CheckCreate, CheckUpdate   string
	CommitCreate, CommitUpdate string // empty for a service that does not count in two phases
	OnEnd                      string
	Token                      string        // sent as X-Auth-Token
	BearerToken                string        // sent as Authorization: Bearer
	KeystoneToken              bool          // send the token of Almanac's service user as X-Auth-Token
	Timeout                    time.Duration // of one call, from its token to the end of the answer

	// Session provides the token of KeystoneToken.
	Session Session
	// Measure is called after each call with its outcome and with how long it took.
	Measure func(verb enforcement.Verb, outcome Outcome, took time.Duration)
	// Elapsed is the time since some moment, on a monotonic clock.
	Elapsed func() time.Duration
}

// Session is a user's session with Keystone.
type Session interface {
	// Token returns a token; stale is one that a service rejected, or empty.
	Token(ctx context.Context, stale string) (string, error)
}

// Outcome is how a call ended.
type Outcome string

// The outcomes.
const (
	Allowed Outcome = "allowed"
	Refused Outcome = "refused"
	Failed  Outcome = "failed" // no usable answer
)

// Outcomes lists all outcomes.
var Outcomes = []Outcome{Allowed, Refused, Failed}

const (
	// longestAnswer is how many bytes of an answer are read.
	longestAnswer = 64 << 10
	// longestText is the largest length of the service's own text, in characters.
	longestText = 500
)

// Client implements enforcement.UsageService. It is safe for concurrent use.
type Client struct {
	options Options
	urls    map[enforcement.Verb]string
	http    *http.Client
}

// New returns a client, without a call. It returns an Invalid fault for unusable options.
func New(o Options) (*Client, error) {
	c := &Client{options: o, urls: make(map[enforcement.Verb]string), http: &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		// A redirect would hand the token to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	base, err := address("external_service_base_endpoint", o.Base)
	if err != nil {
		return nil, err
	}
	for _, e := range []struct {
		verb        enforcement.Verb
		option, own string
		based       bool // relative to the base without an address of its own
	}{
		{enforcement.CheckCreate, "external_service_check_create_endpoint", o.CheckCreate, true},
		{enforcement.CommitCreate, "external_service_commit_create_endpoint", o.CommitCreate, false},
		{enforcement.CheckUpdate, "external_service_check_update_endpoint", o.CheckUpdate, true},
		{enforcement.CommitUpdate, "external_service_commit_update_endpoint", o.CommitUpdate, false},
		{enforcement.OnEnd, "external_service_on_end_endpoint", o.OnEnd, true},
	} {
		at, err := address(e.option, e.own)
		switch {
		case err != nil:
			return nil, err
		case at != nil:
			c.urls[e.verb] = at.String()
		case e.based && base != nil:
			c.urls[e.verb] = base.ResolveReference(&url.URL{Path: string(e.verb)}).String()
		}
	}
	if len(c.urls) == 0 {
		return nil, fault.Field("external_service_base_endpoint", "is needed by %s, or the address of one of its calls", enforcement.ExternalService)
	}
	return c, nil
}

// address returns the URL of an option; nil if it is empty.
func address(option, text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	at, err := url.Parse(text)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return nil, fault.Field(option, "must be a URL such as https://usage.example.org/v1/")
	}
	return at, nil
}

// Has implements enforcement.UsageService.
func (c *Client) Has(verb enforcement.Verb) bool { return c.urls[verb] != "" }

// Call implements enforcement.UsageService. It sends a request once, and once more only with a new token
// of Keystone's if the first one is rejected.
func (c *Client) Call(ctx context.Context, verb enforcement.Verb, request []byte) error {
	began := c.options.Elapsed()
	answer, err := c.send(ctx, verb, request)
	outcome := Failed
	switch {
	case err != nil:
		err = failed("does not answer", err)
	case answer.status == http.StatusNoContent:
		outcome = Allowed
	case answer.status == http.StatusForbidden && answer.text() != "":
		outcome, err = Refused, fault.New(fault.Denied, "%s", answer.text())
	case answer.status == http.StatusForbidden:
		outcome, err = Refused, fault.New(fault.Denied, "the external usage service refuses the request without a reason")
	default:
		err = failed("does not work", fmt.Errorf("it answered %d", answer.status))
	}
	c.options.Measure(verb, outcome, c.options.Elapsed()-began)
	return err
}

// failed returns the error of a call without a usable answer. The text of such an answer is not for
// users. The error does not wrap the cause: the end of the time for the call is not that of the request.
func failed(how string, cause error) error {
	return &fault.Error{
		Kind: fault.Denied, Message: "the external usage service, which must allow the request, " + how + "; try again later or ask your operator",
		Err: fmt.Errorf("%w: %v", enforcement.ErrNoAnswer, cause),
	}
}

// answer is an answer of the service.
type answer struct {
	status int
	body   []byte
}

// text returns the reason of a refusal: Blazar's services send it as message, Coral Credits as error.
func (a answer) text() string {
	var body struct{ Message, Error any }
	if json.Unmarshal(a.body, &body) != nil {
		return ""
	}
	for _, value := range []any{body.Message, body.Error} {
		text, _ := value.(string)
		text = strings.Join(strings.Fields(text), " ")
		if letters := []rune(text); len(letters) > longestText {
			text = string(letters[:longestText]) + "…"
		}
		if text != "" {
			return text
		}
	}
	return ""
}

// send posts a request and reads the answer.
func (c *Client) send(ctx context.Context, verb enforcement.Verb, request []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	token := c.options.Token
	for stale := ""; ; stale = token {
		if c.options.KeystoneToken {
			var err error
			if token, err = c.options.Session.Token(ctx, stale); err != nil {
				return answer{}, err
			}
		}
		a, err := c.post(ctx, c.urls[verb], token, request)
		if err != nil || a.status != http.StatusUnauthorized || !c.options.KeystoneToken || stale != "" {
			return a, err
		}
	}
}

// post sends a request and returns the status and body of the answer. Errors do not contain the address.
func (c *Client) post(ctx context.Context, to, token string, body []byte) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("X-Auth-Token", token)
	}
	if c.options.BearerToken != "" {
		request.Header.Set("Authorization", "Bearer "+c.options.BearerToken)
	}
	got, err := c.http.Do(request)
	if err != nil {
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err // without the address, which may hold a password
		}
		return answer{}, cmp.Or(ctx.Err(), err)
	}
	defer got.Body.Close()
	a := answer{status: got.StatusCode}
	a.body, err = io.ReadAll(io.LimitReader(got.Body, longestAnswer))
	return a, err
}
