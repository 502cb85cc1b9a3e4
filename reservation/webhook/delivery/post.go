// SPDX-License-Identifier: Apache-2.0

// Package delivery tells webhooks of changes: it stores what each of them is told of, and sends that over HTTP.
package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/notice"
	"github.com/almanac-cloud/almanac/reservation/webhook"
)

const (
	// requestTime limits one request, with its connection and its answer.
	requestTime = 10 * time.Second
	// idleTime is how long a connection is kept for the next delivery.
	idleTime = 30 * time.Second
	// mostHeader and mostBody bound in bytes what is read of an answer.
	mostHeader = 16 << 10
	mostBody   = 1 << 10
	// longestError is the largest number of bytes of an error that is stored.
	longestError = 500
)

// Message is one event on its way to a webhook.
type Message struct {
	ID     string // the same with each try
	URL    string
	Secret webhook.Secret
	Body   []byte // a CloudEvent
}

// Poster sends messages to the allowed addresses. It follows no redirects and uses no proxy: a proxy would resolve the
// names, and nobody could tell which address is contacted.
type Poster struct {
	allowed   webhook.Allowed
	userAgent string
	now       func() span.Instant
	clients   map[string]*http.Client // by scheme
}

// NewPoster returns a Poster of a version of Almanac.
func NewPoster(allowed webhook.Allowed, version string, now func() span.Instant) *Poster {
	p := &Poster{allowed: allowed, userAgent: "almanac/" + version, now: now, clients: map[string]*http.Client{}}
	for _, scheme := range []string{"https", "http"} {
		p.clients[scheme] = &http.Client{
			Transport: &http.Transport{
				DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
					return p.dial(ctx, scheme, network, address)
				},
				TLSHandshakeTimeout: requestTime, IdleConnTimeout: idleTime, MaxIdleConns: 100, MaxIdleConnsPerHost: 2,
				MaxResponseHeaderBytes: mostHeader, ForceAttemptHTTP2: true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return p
}

// errForbidden is the error of a connection to an address that is not allowed. It does not name the address: what a name
// stands for inside the cloud is not for its users.
var errForbidden = errors.New("the name stands for an address that the operator does not allow")

// dial connects to an address of a target. The dialer asks about each address that the name resolves to, just before it
// contacts that address.
func (p *Poster) dial(ctx context.Context, scheme, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	target := webhook.Target{Scheme: scheme, Host: webhook.PlainName(host), Port: port}
	dialer := &net.Dialer{ControlContext: func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
		at, err := webhook.Address(resolved)
		if err == nil && !p.allowed.Reaches(target, at) {
			err = errForbidden
		}
		return err
	}}
	return dialer.DialContext(ctx, network, address)
}

// Check returns an error unless messages may be sent to an address. It asks the resolver for its name.
func (p *Poster) Check(ctx context.Context, address string) error {
	target, err := webhook.TargetOf(address)
	if err != nil {
		return err
	}
	if err := p.allowed.Permits(target); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime/2)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", target.Host)
	if err != nil {
		return fault.Field("url", "the name %s cannot be resolved", target.Host)
	}
	for _, at := range found {
		if p.allowed.Reaches(target, at) {
			return nil
		}
	}
	return fault.Field("url", "%s has no address that the operator allows; ask for its network in [webhooks] allowed", target.Host)
}

// Post sends a message once, and returns what came of it.
func (p *Poster) Post(ctx context.Context, m Message) webhook.Answer {
	answer, err := p.post(ctx, m)
	if err != nil {
		answer = webhook.Answer{Err: plain(err)}
	}
	return answer
}

func (p *Poster) post(ctx context.Context, m Message) (a webhook.Answer, err error) {
	target, err := webhook.TargetOf(m.URL)
	if err != nil {
		return a, err
	}
	if err := p.allowed.Permits(target); err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return a, err
	}
	at := p.now()
	signature, err := m.Secret.Sign(m.ID, at, m.Body)
	if err != nil {
		return a, err
	}
	for name, value := range map[string]string{
		"Content-Type": notice.ContentType, "User-Agent": p.userAgent,
		"Webhook-Id": m.ID, "Webhook-Timestamp": strconv.FormatInt(int64(at), 10), "Webhook-Signature": signature,
	} {
		request.Header.Set(name, value)
	}
	response, err := p.clients[target.Scheme].Do(request)
	if err != nil {
		return a, err
	}
	_, _ = io.CopyN(io.Discard, response.Body, mostBody) // a short rest lets the connection be used again
	_ = response.Body.Close()
	return webhook.Answer{Status: response.StatusCode, RetryAfter: retryAfter(response.Header.Get("Retry-After"), at)}, nil
}

// retryAfter returns in how many seconds a receiver asks to try again; 0 if it does not.
func retryAfter(text string, now span.Instant) int64 {
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return max(0, seconds)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, int64(span.At(at)-now))
	}
	return 0
}

// plain returns the text of an error without the URL, which may contain a token.
func plain(err error) string {
	if of, is := errors.AsType[*url.Error](err); is {
		err = of.Err
	}
	if errors.Is(err, errForbidden) {
		err = errForbidden
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("the receiver did not answer within %v", requestTime)
	}
	if lookup, is := errors.AsType[*net.DNSError](err); is {
		return fmt.Sprintf("the name %s cannot be resolved", lookup.Name)
	}
	text := err.Error()
	return text[:min(len(text), longestError)]
}
