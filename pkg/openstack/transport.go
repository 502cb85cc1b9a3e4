// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/almanac-cloud/almanac/pkg/tracing"
)

// longestAnswer is more than 1,000 servers or 10,000 allocation candidates need.
const longestAnswer = 64 << 20

var errTooLong = errors.New("the answer is too long")

// authorities returns the certificates in a PEM file.
func authorities(caFile string) (*x509.CertPool, error) {
	text, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s contains no certificate in PEM form", caFile)
	}
	return pool, nil
}

// newHTTP returns the HTTP client of the service. It adds tokens, traces and counts, limits answers, and
// follows no redirect.
func (s *Service) newHTTP(trust *tls.Config) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = atOnce
	transport.TLSClientConfig = trust
	return &http.Client{
		Transport: signed{session: s.session, next: tracing.Transport(s.kind.Name, metered{service: s, next: transport})},
		// A redirect would hand the token, which travels in a header, to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// signed sends the session's token with each request, or the caller's (As). If the session's token
// is rejected, it sends the request once more with a new one.
type signed struct {
	session Session
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper. It sends the request with the caller's token, or else with
// Almanac's; after a 401 it gets a new one and sends the request again.
func (t signed) RoundTrip(r *http.Request) (*http.Response, error) {
	if token, is := callers(r.Context()); is {
		return Resend(t.next, r, token)
	}
	token, err := t.session.Token(r.Context(), "")
	if err != nil {
		return nil, err
	}
	first := r.Clone(r.Context())
	first.Header.Set("X-Auth-Token", token)
	answer, err := t.next.RoundTrip(first)
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return answer, err
	}
	answer.Body.Close()
	if token, err = t.session.Token(r.Context(), token); err != nil {
		return nil, err
	}
	return Resend(t.next, r, token)
}

// Resend sends a request, which may have been sent before, with another token.
func Resend(next http.RoundTripper, r *http.Request, token string) (*http.Response, error) {
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		var err error
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	again.Header.Set("X-Auth-Token", token)
	return next.RoundTrip(again)
}

// metered counts requests and bounds the size of responses.
type metered struct {
	service *Service
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper. It counts the call and bounds the answer.
func (t metered) RoundTrip(r *http.Request) (*http.Response, error) {
	t.service.calls.Add(1)
	answer, err := t.next.RoundTrip(r)
	if err == nil {
		answer.Body = &boundedBody{ReadCloser: answer.Body, left: longestAnswer}
	}
	return answer, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader. After the bound it returns errTooLong.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
