// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"context"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/accounting"
)

// Options are what the calls about times need.
type Options struct {
	Live    Live
	Turns   Turns
	Reader  reservation.Reader
	History History
	// Snapshot returns the hosts.
	Snapshot func() *inventory.Snapshot
	// Power returns the hosts that are switched; nil without an energy controller.
	Power Power
	// FeedSecret is the key that signs the links to the projects' feeds; empty means that there are
	// no links.
	FeedSecret string
	Now        func() span.Instant
}

// Live are the reservations that are not over.
type Live interface {
	// Live returns those that overlap a time, and LiveMarked also their version.
	Live(overlaps span.Span) []reservation.Reservation
	LiveMarked(overlaps span.Span) ([]reservation.Reservation, uint64)
	// Fingerprint returns the version of all of them; another process with the same ones returns the same.
	Fingerprint() uint64
}

// Turns are the turns of projects.
type Turns interface {
	// InTurn runs do in a project's turn. It fails if the turn does not come before ctx ends.
	InTurn(ctx context.Context, project string, do func()) error
}

// Power reads the hosts that are switched.
type Power interface {
	Hosts(ctx context.Context) ([]controller.HostStatus, error)
}

// History reads what is over.
type History interface {
	Past
	Kept
	Phases
}

// Past reads what reservations held.
type Past interface {
	// Past returns a page of what reservations held, sorted by start, then id: those that are over, and
	// live ones that have released claims. Each holds something in q.Overlaps. more is false on the last
	// page.
	Past(ctx context.Context, q reservation.PastQuery) (page []reservation.Past, more bool, err error)
	// PastOnHosts returns what reservations that are over, or have released claims, held on some hosts,
	// each with its claims there that overlap the time. unread is the first host with claims that the
	// answer lacks because there are more than q.Limit; empty if it lacks none.
	PastOnHosts(ctx context.Context, q reservation.PastHosts) (list []reservation.Past, unread string, err error)
	// PastUsage returns sums of what purged reservations held on days that overlap w, at most limit. They
	// are sorted, and after is the last sum of the page before, or empty. An empty project is all.
	PastUsage(ctx context.Context, w span.Span, project string, after accounting.DaySum, limit int) ([]accounting.DaySum, error)
}

// Kept reads how much of the past is stored.
type Kept interface {
	// LastChange returns the place of the last stored change in the change log; 0 if there is none.
	LastChange(ctx context.Context) (int64, error)
	// Kept returns which part of the past is kept in full.
	Kept(ctx context.Context) (reservation.Kept, error)
}

// Phases reads when hosts were switched.
type Phases interface {
	// Phases returns the entries of the audit of kind energy.EntryPhase from an instant on, the
	// oldest first, at most limit.
	Phases(ctx context.Context, from span.Instant, limit int) ([]energy.Entry, error)
	// PhasesBefore returns the last such entry before an instant of each host that has a later one, the
	// oldest first.
	PhasesBefore(ctx context.Context, from span.Instant) ([]energy.Entry, error)
	// PowerRecords returns the records of the hosts that Almanac switches, by name.
	PowerRecords(ctx context.Context) (map[string]energy.Record, error)
}

// API serves the calls about when what is and was reserved.
type API struct {
	Options

	prints fingerprints
	tags   *lru.Cache[string, string] // of the last calendars, by view.key
}

// New returns the calls about times.
func New(o Options) *API { return &API{Options: o, tags: newTags()} }
