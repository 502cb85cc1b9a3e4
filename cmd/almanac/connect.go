// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/keystone"
)

const defaultURL = "http://127.0.0.1:1234"

// serviceType is Almanac's service type in the catalog.
const serviceType = "reservation"

// connect returns a client of the Almanac and for the user that the flags and the environment
// name.
func (p *process) connect(ctx context.Context) (*client.Client, error) {
	o := client.Options{
		URL:       cmp.Or(p.url, p.env("ALMANAC_URL")),
		UserAgent: "almanac/" + version,
		RequestID: func() string { return "req-" + uuid.NewString() },
		Wait:      p.pause,
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: mostWorkers}
	var way http.RoundTripper = transport
	if p.debug {
		way = &tracer{next: transport, out: p.stderr}
	}
	login, err := p.login()
	if err != nil {
		return nil, err
	}
	if login != nil {
		transport.TLSClientConfig = login.TLS()
		way, o.Token = login.Renewing(way), login.Token
		if o.URL == "" {
			if o.URL, err = login.Endpoint(ctx, serviceType); err != nil {
				return nil, err
			}
		}
	}
	o.URL = cmp.Or(o.URL, defaultURL)
	o.HTTPClient = &http.Client{Timeout: p.timeout.time(), Transport: way, CheckRedirect: stay}
	return client.New(o)
}

// login returns the user's login to Keystone; nil if nothing names a user.
func (p *process) login() (*keystone.Login, error) {
	user, found, err := keystone.FindUser(p.env, p.choice)
	if err != nil || !found {
		return nil, err
	}
	return keystone.NewLogin(user, p.timeout.time(), p.now)
}

// stay follows no redirect, because that would send the token to another server.
func stay(req *http.Request, _ []*http.Request) error {
	return fmt.Errorf("it redirects to %s", req.URL.Redacted())
}

// tracer prints requests as calls of curl, and their answers.
type tracer struct {
	next http.RoundTripper
	out  io.Writer
	mu   sync.Mutex // keeps the lines of a request together
}

func (t *tracer) RoundTrip(req *http.Request) (*http.Response, error) {
	command, err := curl(req)
	if err != nil {
		return nil, err
	}
	t.print("%s\n", command)
	answer, err := t.next.RoundTrip(req)
	if err != nil {
		t.print("no answer: %v\n", err)
		return nil, err
	}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") { // has no end
		t.print("%s %s, request %s\n", answer.Proto, answer.Status, answer.Header.Get("X-Openstack-Request-Id"))
		return answer, nil
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	t.print("%s %s, request %s\n%s\n", answer.Proto, answer.Status, answer.Header.Get("X-Openstack-Request-Id"), bytes.TrimSpace(body))
	return answer, err
}

func (t *tracer) print(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, format, args...)
}

// curl formats the request as a command line with masked secrets.
func curl(req *http.Request) (string, error) {
	parts := []string{"curl", "-g", "-i", "-X", req.Method, quote(req.URL.String())}
	var headers []string
	for name, values := range req.Header {
		value := strings.Join(values, ", ")
		if name == "X-Auth-Token" || name == "Authorization" {
			value = "***"
		}
		headers = append(headers, name+": "+value)
	}
	slices.Sort(headers)
	for _, header := range headers {
		parts = append(parts, "-H", quote(header))
	}
	if req.GetBody != nil {
		reader, err := req.GetBody()
		if err != nil {
			return "", err
		}
		body, err := io.ReadAll(reader)
		if err != nil {
			return "", err
		}
		if len(body) > 0 {
			parts = append(parts, "-d", quote(string(body)))
		}
	}
	return strings.Join(parts, " "), nil
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
