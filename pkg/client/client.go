// SPDX-License-Identifier: Apache-2.0

// Package client calls the REST API of Almanac.
//
// There is one method for each call; requests and answers have the types of package v1. An
// answer with a status of 400 or more, and the lack of an answer, is an *Error. The client
// repeats a call a few times where that does no harm: a GET, a call with an idempotency key,
// and a call that Almanac rejected because of its rate limit. It sends all other calls once.
package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
)

// Options configure a Client. Only URL is required.
type Options struct {
	// URL is the address of Almanac, with or without /v1 at the end, such as
	// http://127.0.0.1:1234.
	URL string
	// HTTPClient sends the requests; nil is http.DefaultClient. Its Timeout applies to each
	// request.
	HTTPClient *http.Client
	// Token returns the Keystone token to send with a request; nil sends none.
	Token func(context.Context) (string, error)
	// UserAgent names the calling program; empty means the default of net/http.
	UserAgent string
	// RequestID returns the id of a call, "req-" and a UUID, which Almanac logs and sends
	// back; if nil, Almanac generates one.
	RequestID func() string
	// Wait returns after d, or earlier with the error of the context; nil uses a timer. The
	// client calls it before it repeats a call.
	Wait func(ctx context.Context, d time.Duration) error
}

// Client calls one Almanac. It is safe for concurrent use.
type Client struct {
	options  Options
	base     string  // without a slash at the end and without /v1
	expected string  // the header If-Match of changes and deletions; empty sends none
	tag      *string // receives the tags of answers; nil discards them
}

// New returns a client. The error is an Invalid fault if the URL is not valid.
func New(o Options) (*Client, error) {
	parsed, err := url.Parse(o.URL)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, fault.Field("url", "%q is not a URL of Almanac; write one such as http://127.0.0.1:1234", o.URL)
	}
	if o.HTTPClient == nil {
		o.HTTPClient = http.DefaultClient
	}
	if o.Wait == nil {
		o.Wait = job.Pause
	}
	base := strings.TrimRight(o.URL, "/")
	return &Client{options: o, base: strings.TrimSuffix(base, "/v1")}, nil
}

// Tagging returns the same client, which writes the tag of each answer to tag: the ETag of an answer that shows one
// object which can be changed, and otherwise an empty text. It is not safe for concurrent use.
func (c *Client) Tagging(tag *string) *Client {
	next := *c
	next.tag = tag
	return &next
}

// Expecting returns the same client, whose changes and deletions, and the offers of them, are for what has this tag. If
// somebody has changed it since, Almanac does nothing, and the error is a Precondition. An empty tag expects nothing.
func (c *Client) Expecting(tag string) *Client {
	next := *c
	next.expected = tag
	return &next
}
