// SPDX-License-Identifier: Apache-2.0

// Package openstack calls the REST API of an OpenStack service, such as Nova: it finds the
// service in the catalog, agrees on a microversion, sends the token of the service user, bounds
// time, size and number of calls, and converts errors to faults.
package openstack

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
)

// Session is a user's session with Keystone.
type Session interface {
	// Token returns a token. stale is a token that a service rejected, or empty: if it is the
	// session's own, the session logs in again.
	Token(ctx context.Context, stale string) (string, error)
	// Endpoint returns the address of a service from the catalog, by the first existing one of
	// the interfaces (internal, public, admin). region "" is any.
	Endpoint(ctx context.Context, serviceType, region string, interfaces []string) (string, error)
}

// Kind describes a service and the microversions that Almanac supports.
type Kind struct {
	Name string // in messages: "nova"
	Type string // in the catalog: "compute"
	// Path is the version's part of the address, if there is one: "v2.1".
	Path string
	// Least and Most are zero for a service without microversions, such as Glance.
	Least, Most Microversion
}

// Options configure where the service is and how it is called.
type Options struct {
	Region     string   // region_name; empty: any
	Interfaces []string // valid_interfaces, the best first; none: internal, then public
	Override   string   // endpoint_override: the address, instead of the catalog's
	CAFile     string   // PEM; empty: the system's
	Insecure   bool     // do not verify the service's certificate
	// Timeout bounds one call, from its token to the end of the answer; 0 is DefaultTimeout.
	Timeout time.Duration
	// MaxMicroversion lowers the highest microversion used, such as "2.87".
	MaxMicroversion string
	// Wait sleeps between two attempts; nil uses the clock.
	Wait func(ctx context.Context, d time.Duration) error
}

const (
	// DefaultTimeout is longer than Nova needs for 1,000 servers with their flavors.
	DefaultTimeout = time.Minute
	// atOnce bounds the concurrent calls to a service.
	atOnce = 8
)

// pauses are the waits before a read is repeated.
var pauses = []time.Duration{200 * time.Millisecond, time.Second}

// Service is one service of the cloud. It is safe for concurrent use.
type Service struct {
	kind    Kind
	options Options
	session Session
	http    *http.Client
	slots   chan struct{}
	calls   atomic.Int64

	mu     sync.Mutex
	client *gophercloud.ServiceClient // nil until the service is found
}

// NewService returns a service, without calling it. It returns an Invalid fault for unusable
// options.
func NewService(session Session, kind Kind, o Options) (*Service, error) {
	trust, err := Trust(o.CAFile, o.Insecure)
	if err != nil {
		return nil, fault.Field("cafile", "%v", err)
	}
	if o.MaxMicroversion != "" {
		most, err := ParseMicroversion(o.MaxMicroversion)
		if err != nil || most.Less(kind.Least) {
			return nil, fault.Field("max_microversion", "must be a microversion of %s from %s on, not %q", kind.Name, kind.Least, o.MaxMicroversion)
		}
		if most.Less(kind.Most) {
			kind.Most = most
		}
	}
	if len(o.Interfaces) == 0 {
		o.Interfaces = []string{"internal", "public"}
	}
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	if o.Wait == nil {
		o.Wait = job.Pause
	}
	s := &Service{kind: kind, options: o, session: session, slots: make(chan struct{}, atOnce)}
	s.http = s.newHTTP(trust)
	return s, nil
}

// Calls returns the number of requests sent to the service so far.
func (s *Service) Calls() int64 { return s.calls.Load() }

// Call uses a client of the service; it may use functions of gophercloud.
type Call func(ctx context.Context, c *gophercloud.ServiceClient) error

// Read runs a call that changes nothing. If the service does not answer, or answers 502, 503 or
// 504, Read repeats it twice. doing names the purpose for messages, such as "list the servers".
//
// It returns NotFound, Conflict, Denied, Invalid or TooMany faults according to the service's
// answer, and an Unavailable fault if there is no usable answer. The error contains an *Answer
// if there was one.
func (s *Service) Read(ctx context.Context, doing string, call Call) error {
	err := s.once(ctx, call)
	for _, pause := range pauses {
		if err == nil || !temporary(err) || s.options.Wait(ctx, pause) != nil {
			break
		}
		err = s.once(ctx, call)
	}
	return s.explain(doing, err)
}

// Change runs a call that changes something, once; it returns the errors of Read. After an
// Unavailable fault the change may or may not have happened.
func (s *Service) Change(ctx context.Context, doing string, call Call) error {
	return s.explain(doing, s.once(ctx, call))
}

// Get decodes the JSON at path, below the endpoint, into a value. It returns the errors of
// Read.
func (s *Service) Get(ctx context.Context, doing, path string, into any) error {
	return s.GetAtMost(ctx, s.kind.Most, doing, path, into)
}

// GetAtMost is Get with a microversion no higher than most.
func (s *Service) GetAtMost(ctx context.Context, most Microversion, doing, path string, into any) error {
	var body []byte
	err := s.Read(ctx, doing, func(ctx context.Context, c *gophercloud.ServiceClient) error {
		c = atMost(most, c)
		answer, err := c.Get(ctx, c.ServiceURL(path), nil, &gophercloud.RequestOpts{KeepResponseBody: true})
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		body, err = io.ReadAll(answer.Body)
		return err
	})
	if err != nil {
		return err
	}
	return s.explain(doing, json.Unmarshal(body, into))
}

// Send sends one request that changes something: its body as JSON, unless it is nil, to path, below
// the endpoint. It decodes the JSON of the answer into a value, unless that is nil. Any other status
// than the given ones is an error. It returns the errors of Change.
func (s *Service) Send(ctx context.Context, doing, method, path string, body, into any, statuses ...int) error {
	return s.SendAtMost(ctx, s.kind.Most, doing, method, path, body, into, statuses...)
}

// SendAtMost is Send with a microversion no higher than most.
func (s *Service) SendAtMost(ctx context.Context, most Microversion, doing, method, path string, body, into any, statuses ...int) error {
	return s.Change(ctx, doing, func(ctx context.Context, c *gophercloud.ServiceClient) error {
		_, err := atMost(most, c).Request(ctx, method, c.ServiceURL(path), &gophercloud.RequestOpts{JSONBody: body, JSONResponse: into, OkCodes: statuses})
		return err
	})
}

// atMost returns the client for a microversion that is no higher than most.
func atMost(most Microversion, c *gophercloud.ServiceClient) *gophercloud.ServiceClient {
	if spoken, err := ParseMicroversion(c.Microversion); err != nil || !most.Less(spoken) {
		return c
	}
	older := *c
	older.Microversion = most.String()
	return &older
}

// UnlessMissing returns nil for a NotFound fault, and any other error as it is.
func UnlessMissing(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// once runs the call when a slot is free, within its timeout. After a failure that may mean
// that the service has changed, for example by an upgrade, the next call looks it up again.
func (s *Service) once(ctx context.Context, call Call) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	client, err := s.found(ctx)
	if err != nil {
		return err
	}
	err = AsAnswer(s.kind.Name, call(ctx, client))
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // err may contain the cause instead, such as the answer to another call
	}
	if temporary(err) || Status(err) == http.StatusNotAcceptable || errors.Is(err, context.DeadlineExceeded) {
		s.forget(client)
	}
	return err
}

// temporary reports whether a failure may be temporary.
func temporary(err error) bool {
	switch Status(err) {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	if _, ours := errors.AsType[*fault.Error](err); ours || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	return errors.Is(err, io.ErrUnexpectedEOF) || noAnswer(err)
}

// Trust returns the TLS configuration that accepts the authorities in a PEM file or, if it is
// "", the system's.
func Trust(caFile string, insecure bool) (*tls.Config, error) {
	trust := &tls.Config{InsecureSkipVerify: insecure}
	if caFile == "" {
		return trust, nil
	}
	var err error
	if trust.RootCAs, err = authorities(caFile); err != nil {
		return nil, fmt.Errorf("read the certificates: %w", err)
	}
	return trust, nil
}
