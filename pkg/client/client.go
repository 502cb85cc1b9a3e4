// Package client calls the REST API of Almanac.
//
// There is one method for each call; the types of what is sent and answered are
// those of package v1. An answer from 400 on, and the lack of an answer, is an
// *Error. A call that may be sent twice without harm (a GET, or a booking with an
// idempotency key) is repeated by itself a few times, and so is one that was turned
// away because there were too many; all others are sent once.
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

// Options say where Almanac is and how to call it. Only URL is needed.
type Options struct {
	// URL is where Almanac answers, with or without the ending /v1, such as
	// http://127.0.0.1:1234.
	URL string
	// HTTPClient sends the requests; nil is http.DefaultClient. Its Timeout holds
	// for each request by itself.
	HTTPClient *http.Client
	// Token gives the Keystone token to send with a request; nil sends none.
	Token func(context.Context) (string, error)
	// UserAgent names the program that calls; empty leaves it to net/http.
	UserAgent string
	// RequestID gives the id of a call, "req-" and a UUID, which Almanac logs and
	// answers; nil leaves it to Almanac to make one.
	RequestID func() string
	// Wait returns after d, or earlier with the error of the context; nil waits on
	// a timer. It is called before a call is repeated.
	Wait func(ctx context.Context, d time.Duration) error
}

// Client calls one Almanac. It may be used by several goroutines at once.
type Client struct {
	options Options
	base    string // without a slash at the end and without /v1
}

// New gives a client. It fails with an Invalid fault where the URL is none.
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
