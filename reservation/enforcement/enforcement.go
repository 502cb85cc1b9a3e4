// SPDX-License-Identifier: Apache-2.0

// Package enforcement decides, as Blazar's package of this name does, whether a project may have
// what it books: it knows a maximum duration, and it asks the operator's usage service. It tells that
// service when leases that the service allowed have ended.
package enforcement

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// The checks, by Blazar's names of its filters, in the order in which they are made.
const (
	MaxLeaseDuration = "MaxLeaseDurationFilter"
	ExternalService  = "ExternalServiceFilter"
)

// Names lists all checks.
var Names = []string{MaxLeaseDuration, ExternalService}

// Rules are the operator's settings: which checks are made, the maximum duration of a lease, and which
// projects are exempt.
type Rules struct {
	// Enabled are the names of the checks that are made.
	Enabled []string
	// MaxDuration is the maximum duration of a lease in seconds; -1 means no limit.
	MaxDuration int64
	// MaxDurationExempt and ServiceExempt are the ids of the projects for which there is no maximum
	// duration, and about which the usage service is not asked.
	MaxDurationExempt, ServiceExempt []string
}

// Verb is what a request to the usage service is about.
type Verb string

// The verbs. A service that counts in two phases is asked with CheckCreate and CheckUpdate, which
// must change nothing, and then told with CommitCreate and CommitUpdate, which may still be refused.
const (
	CheckCreate  Verb = "check-create"
	CommitCreate Verb = "create"
	CheckUpdate  Verb = "check-update"
	CommitUpdate Verb = "update"
	OnEnd        Verb = "on-end"
)

// Verbs lists all verbs.
var Verbs = []Verb{CheckCreate, CommitCreate, CheckUpdate, CommitUpdate, OnEnd}

// UsageService is a site's own service that must allow bookings and changes.
type UsageService interface {
	// Has reports whether the service receives requests of this verb.
	Has(verb Verb) bool
	// Call sends one request, a blazar.UsageRequest as JSON. It returns nil if the service allows it, and otherwise a Denied fault
	// with a sentence for the user. The fault wraps ErrNoAnswer unless the service refused.
	Call(ctx context.Context, verb Verb, request []byte) error
}

// ErrNoAnswer means that the usage service neither allowed nor refused a request.
var ErrNoAnswer = errors.New("the usage service has no usable answer")

// Options configure a Checker.
type Options struct {
	Rules
	Service UsageService // nil without the check ExternalService
	Records Records
	Hosts   func() *inventory.Snapshot
	// AuthURL and Region are Keystone's address and the region, for the usage service.
	AuthURL, Region string
	Now             func() span.Instant
	Log             *slog.Logger // receives the context of the request
}

// Checker makes the checks. It is safe for concurrent use.
type Checker struct{ Options }

// New returns a checker.
func New(o Options) *Checker { return &Checker{o} }

// Concerns reports whether the checks must allow a lease, next: a new one if before is nil, and
// otherwise one with other times, hosts or amounts than before. They are not asked about a lease
// that holds nothing, or about maintenance.
func (c *Checker) Concerns(before, next *reservation.LeaseRecord) bool {
	if !slices.ContainsFunc(next.Reservations, func(r reservation.Reservation) bool { return r.Status.Live() && !r.Maintenance }) {
		return false
	}
	if !c.limits(next.ProjectID) && !c.serves(next.ProjectID) {
		return false
	}
	return before == nil || before.Span != next.Span || !slices.Equal(hostsOf(before), hostsOf(next)) || !maps.Equal(c.amounts(before), c.amounts(next))
}

// Covers reports whether the answer about asked holds for next too, which was decided later: it has
// the same amounts, perhaps on other hosts, and almost the same times.
func (c *Checker) Covers(asked, next *reservation.LeaseRecord) bool {
	const late = 60 // seconds: a lease that starts now starts later after a slow answer
	shift := next.Span.Start - asked.Span.Start
	return shift >= -late && shift <= late && next.Span.Seconds() <= asked.Span.Seconds()+late && maps.Equal(c.amounts(asked), c.amounts(next))
}

// Ask makes the checks about a new lease, or, with before, about a changed one. It returns a Denied
// fault with a sentence for the user if one of them does not allow it. If it returns nil, the usage
// service counts on the lease, until Withdraw or until its end.
func (c *Checker) Ask(ctx context.Context, before, next *reservation.LeaseRecord) error {
	if c.limits(next.ProjectID) && next.Span.Seconds() > c.MaxDuration {
		return fault.New(fault.Denied, "Lease duration of %d seconds must be less than or equal to the maximum lease duration of %d seconds.",
			next.Span.Seconds(), c.MaxDuration)
	}
	if !c.serves(next.ProjectID) {
		return nil
	}
	if before != nil {
		return c.askAboutChange(ctx, before, next)
	}
	request, err := c.request(nil, next)
	if err != nil {
		return err
	}
	if err := c.call(ctx, CheckCreate, next.ID, request); err != nil {
		return err
	}
	if err := c.Records.Tell(ctx, Told{LeaseID: next.ID, Request: request, AskedAt: c.Now()}); err != nil {
		return err
	}
	err = c.call(ctx, CommitCreate, next.ID, request)
	switch {
	case errors.Is(err, ErrNoAnswer): // the service may have counted it
		c.Withdraw(ctx, nil, next)
	case err != nil:
		return errors.Join(err, c.Records.Forget(context.WithoutCancel(ctx), next.ID))
	}
	return err
}

// askAboutChange asks the usage service whether a lease may change, and commits the change there.
func (c *Checker) askAboutChange(ctx context.Context, before, next *reservation.LeaseRecord) error {
	change, err := c.request(before, next)
	if err != nil {
		return err
	}
	end, err := c.request(nil, next)
	if err != nil {
		return err
	}
	if err := c.call(ctx, CheckUpdate, next.ID, change); err != nil {
		return err
	}
	err = c.call(ctx, CommitUpdate, next.ID, change)
	if err != nil && !errors.Is(err, ErrNoAnswer) {
		return err
	}
	if err == nil {
		err = c.Records.Tell(ctx, Told{LeaseID: next.ID, Request: end, AskedAt: c.Now()})
	}
	if err != nil { // the service may have counted it
		c.Withdraw(ctx, before, next)
	}
	return err
}

// Withdraw tells the usage service that a lease that it allowed was not stored. A new lease ends; a
// changed one is as before again.
func (c *Checker) Withdraw(ctx context.Context, before, next *reservation.LeaseRecord) {
	if !c.serves(next.ProjectID) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	err := c.withdraw(ctx, before, next)
	if err != nil {
		c.Log.ErrorContext(ctx, "could not tell the usage service that a request failed after it was allowed", "lease", next.ID, "error", err)
	}
}

// withdraw asks the usage service to count a lease as it was before: not at all, or unchanged.
func (c *Checker) withdraw(ctx context.Context, before, next *reservation.LeaseRecord) error {
	if before == nil {
		request, err := c.request(nil, next)
		if err != nil {
			return err
		}
		return c.Records.Tell(ctx, Told{LeaseID: next.ID, Request: request, Withdrawn: true, AskedAt: c.Now()})
	}
	back, err := c.request(next, before)
	if err != nil {
		return err
	}
	end, err := c.request(nil, before)
	if err != nil {
		return err
	}
	return errors.Join(c.call(ctx, CommitUpdate, next.ID, back), c.Records.Tell(ctx, Told{LeaseID: next.ID, Request: end, AskedAt: c.Now()}))
}

// request returns the request about a lease, with the lease before a change unless it is nil.
func (c *Checker) request(before, next *reservation.LeaseRecord) ([]byte, error) {
	hosts, now := c.Hosts(), c.Now()
	r := blazar.UsageRequest{
		Context: blazar.UsageContext{UserID: next.UserID, ProjectID: next.ProjectID, AuthURL: c.AuthURL, RegionName: c.Region},
		Lease:   blazar.UsageOf(next, hosts, now),
	}
	if before != nil {
		r.CurrentLease = new(blazar.UsageOf(before, hosts, now))
	}
	text, err := json.Marshal(r)
	return text, fault.While(err, "encode the request to the usage service about lease %s", next.ID)
}

// call sends a request about a lease if the service receives this verb.
func (c *Checker) call(ctx context.Context, verb Verb, lease string, request []byte) error {
	if !c.Service.Has(verb) {
		return nil
	}
	return fault.While(c.Service.Call(ctx, verb, request), "ask the usage service with %s about lease %s", verb, lease)
}

// limits reports whether there is a maximum duration for a project.
func (c *Checker) limits(project string) bool {
	return slices.Contains(c.Enabled, MaxLeaseDuration) && c.MaxDuration >= 0 && !slices.Contains(c.MaxDurationExempt, project)
}

// serves reports whether the usage service is asked about a project.
func (c *Checker) serves(project string) bool {
	return slices.Contains(c.Enabled, ExternalService) && c.Service != nil && !slices.Contains(c.ServiceExempt, project)
}

func (c *Checker) amounts(l *reservation.LeaseRecord) map[string]int64 {
	return blazar.ResourceRequests(l, c.Hosts())
}

// hostsOf returns the hosts of a lease, sorted.
func hostsOf(l *reservation.LeaseRecord) (names []string) {
	for i := range l.Reservations {
		names = append(names, l.Reservations[i].HostNames()...)
	}
	slices.Sort(names)
	return names
}
