// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// FindingKind is the kind of a finding.
type FindingKind string

// The kinds of findings.
const (
	FenceIgnored   FindingKind = "fence_ignored"            // Nova places others' instances on fenced hosts
	TwoOwners      FindingKind = "host_in_two_reservations" // a host is in the aggregates of two reservations
	Stranger       FindingKind = "stranger"                 // an instance on a reserved host that does not belong there
	Missing        FindingKind = "missing"                  // a part of the layout does not exist
	Altered        FindingKind = "altered"                  // metadata or extra specs differ from what Almanac sets
	VanishedHost   FindingKind = "vanished_host"            // a reserved host is no longer in the cloud
	VanishedOwner  FindingKind = "vanished_project"         // a project with live reservations is no longer in Keystone
	Unpinned       FindingKind = "besteffort_unpinned"      // Nova chooses the hosts of best-effort work
	Idle           FindingKind = "without_effect"           // a setting has no effect
	Leftover       FindingKind = "leftover"                 // an instance of an ended reservation
	StaleNotice    FindingKind = "stale_notice"             // an instance has the notice of an eviction that is over
	Unplaced       FindingKind = "error_allocation"         // an instance in ERROR on no host has allocations in Placement
	Misplaced      FindingKind = "misplaced"                // a host has something of the layout that it should not have
	OrphanGroup    FindingKind = "orphan_aggregate"         // an aggregate that no reservation needs
	OrphanFlavor   FindingKind = "orphan_flavor"            // a flavor that no reservation needs
	OrphanTrait    FindingKind = "orphan_trait"             // a trait that no reservation needs
	OrphanResource FindingKind = "orphan_class"             // a resource class that no reservation needs
)

// FindingKinds lists all kinds in the order in which findings are reported and fixed: kinds
// that close a gap in the fence come first.
var FindingKinds = []FindingKind{
	FenceIgnored, TwoOwners, Stranger, Missing, Altered, VanishedHost, VanishedOwner, Unpinned, Idle, Leftover, StaleNotice, Unplaced, Misplaced,
	OrphanGroup, OrphanFlavor, OrphanTrait, OrphanResource,
}

// Finding is one inconsistency. Kind and Subject identify it.
type Finding struct {
	Kind    FindingKind
	Subject string // the name of the host, aggregate, flavor, …, or the id of the instance or project
	Message string // what is wrong, in a sentence
	Remedy  string // what to do, or what Fix does
	Fixable bool   // by Fix
	// Outcome is the result of Plan or Fix; empty in a report of Examine. Detail is the reason why
	// the fix was refused or has failed.
	Outcome Outcome
	Detail  string
}

// Outcome is the result of Plan or Fix for one finding.
type Outcome string

// The outcomes.
const (
	FixPlanned Outcome = "planned" // Fix would fix it
	FixDone    Outcome = "fixed"
	FixRefused Outcome = "refused" // the fix removes something, and the inventory is untrusted
	FixFailed  Outcome = "failed"
)

// Examination is the report of a Doctor.
type Examination struct {
	// Cloud is true if there is a cloud. Without one, only the inventory and Keystone are examined.
	Cloud bool
	// Untrusted is why the inventory is untrusted; empty if it is trusted. While it is
	// untrusted, Fix removes nothing.
	Untrusted string
	Findings  []Finding // by kind, then subject
}

// Projects reads projects from Keystone.
type Projects interface {
	// Exists reports whether there is a project with an id. It fails if that cannot be determined.
	Exists(ctx context.Context, project string) (bool, error)
}

// Canceler cancels reservations, and leases with all their reservations.
type Canceler interface {
	Cancel(ctx context.Context, by booking.Caller, id string) (reservation.Reservation, error)
	CancelLease(ctx context.Context, by booking.Caller, id string) (reservation.LeaseRecord, error)
}

// Claims are the allocations of instances in Placement.
type Claims interface {
	// Unplaced returns the instances that have been in ERROR on no host for some time
	// before now and still have allocations.
	Unplaced(ctx context.Context, now span.Instant) ([]inventory.Instance, error)
	// Release deletes the allocations of an instance that Unplaced returned. It fails with a
	// Conflict fault if the instance is no longer in that state.
	Release(ctx context.Context, instance string) error
}

// Doctor checks that reservations, their OpenStack resources, instances and projects are
// consistent, and fixes what it can on request.
type Doctor struct {
	Promises  Promises
	Records   booking.Recaller
	Snapshot  func() *inventory.Snapshot
	Untrusted func() string
	// Fence and Instances reach the cloud; nil means that there is no cloud.
	Fence     FenceBackend
	Instances Instances
	// Claims is nil if there is no cloud.
	Claims Claims
	// Notices are the notices of evictions; nil means that there is no cloud.
	Notices *Notices
	// Projects is nil if there is no Keystone.
	Projects Projects
	Canceler Canceler
	Rules    fence.Rules
	// Fill is true if preemptible instances may use what the owners of active reservations leave
	// unused.
	Fill bool
	// Resting returns those of the servers that best-effort work has suspended and whose
	// allocations it has released in Placement. A nil function means that there is no best-effort
	// work.
	Resting func(ctx context.Context, servers ...string) (map[string]bool, error)
	// Unpinned is the reason why Nova may place best-effort work on hosts other than the planned
	// ones; "" if it cannot.
	Unpinned string
	// Idle returns the options that have no effect now. A nil function means that all have.
	Idle func() map[string]Ineffective
	Now  func() span.Instant
}

// Ineffective is why an option has no effect, and what to do.
type Ineffective struct{ Reason, Remedy string }

// Examine reports findings and changes nothing.
func (d *Doctor) Examine(ctx context.Context) (Examination, error) {
	return d.each(ctx, func(*diagnosis) {})
}

// Plan reports what Fix would do and changes nothing.
func (d *Doctor) Plan(ctx context.Context) (Examination, error) {
	return d.each(ctx, func(t *diagnosis) {
		t.Outcome = FixPlanned
		if t.removes() {
			t.recordFailure(d.requireTrusted())
		}
	})
}

// Fix examines again, fixes what it can, and returns all findings with their outcomes. While
// the inventory is untrusted it removes nothing. It may be called again.
func (d *Doctor) Fix(ctx context.Context, by booking.Caller) (Examination, error) {
	return d.each(ctx, func(t *diagnosis) {
		t.Outcome = FixDone
		t.recordFailure(d.mend(ctx, by, t))
	})
}

// each examines, calls do for each fixable finding, and returns the findings.
func (d *Doctor) each(ctx context.Context, do func(t *diagnosis)) (Examination, error) {
	seen, err := d.gather(ctx)
	if err != nil {
		return Examination{}, err
	}
	e := Examination{Cloud: d.Fence != nil, Untrusted: seen.untrusted, Findings: []Finding{}}
	for _, t := range judge(seen) {
		if t.Fixable {
			do(&t)
		}
		e.Findings = append(e.Findings, t.Finding)
	}
	return e, nil
}

// facts are the input of judge, read at one time.
type facts struct {
	live      []reservation.Reservation
	over      map[string]reservation.Reservation // ended reservations that the cloud still names, by id
	layout    fence.Layout
	cloud     bool // there is a cloud, and layout was read from it
	hosts     *inventory.Snapshot
	gone      map[string]bool // by project: whether it no longer exists
	untrusted string
	rules     fence.Rules
	fill      bool
	now       span.Instant
	// resting are servers that best-effort work has suspended.
	resting  map[string]bool
	unpinned string
	idle     map[string]Ineffective
	// noticed are instances with the notice of an eviction that is over.
	noticed []inventory.Instance
	// unplaced are instances in ERROR on no host that have allocations in Placement.
	unplaced []inventory.Instance
}

// gather reads the facts. It reads the layout first, so that the records, which are read later,
// contain every reservation that the layout names.
func (d *Doctor) gather(ctx context.Context) (f facts, err error) {
	f = facts{cloud: d.Fence != nil, rules: d.Rules, fill: d.Fill, unpinned: d.Unpinned, over: map[string]reservation.Reservation{}, gone: map[string]bool{}}
	if d.Fence != nil {
		if f.layout, err = d.Fence.Layout(ctx); err != nil {
			return f, wrapForUser(err, "read the fence in OpenStack")
		}
	}
	f.hosts, f.untrusted, f.now = d.Snapshot(), d.Untrusted(), d.Now()
	f.live = d.Promises.Live(span.Always)
	if d.Idle != nil {
		f.idle = d.Idle()
	}
	if d.Notices != nil {
		f.noticed = d.Notices.stale(f.hosts, f.now)
	}
	if d.Claims != nil {
		if f.unplaced, err = d.Claims.Unplaced(ctx, f.now); err != nil {
			return f, wrapForUser(err, "read the allocations of instances in ERROR")
		}
	}
	if f.resting, err = d.suspended(ctx, f.hosts); err != nil {
		return f, wrapForUser(err, "read which servers best-effort work has suspended")
	}
	if err := d.readRecords(ctx, &f); err != nil {
		return f, wrapForUser(err, "read the reservations that OpenStack resources name")
	}
	for _, r := range f.live {
		if _, asked := f.gone[r.ProjectID]; asked || d.Projects == nil {
			continue
		}
		there, err := d.Projects.Exists(ctx, r.ProjectID)
		if err != nil {
			return f, wrapForUser(err, "ask Keystone for project %s", r.ProjectID)
		}
		f.gone[r.ProjectID] = !there
	}
	return f, nil
}

// suspended returns the servers that best-effort work has suspended, as a set of ids. They may be
// on hosts of other reservations.
func (d *Doctor) suspended(ctx context.Context, hosts *inventory.Snapshot) (map[string]bool, error) {
	var ids []string
	for _, h := range hosts.Hosts() {
		for i := range h.Instances {
			if g := &h.Instances[i]; g.Status == "SUSPENDED" && g.Locked && len(g.Holds) == 0 {
				ids = append(ids, g.ID)
			}
		}
	}
	if d.Resting == nil || len(ids) == 0 {
		return nil, nil
	}
	return d.Resting(ctx, ids...)
}

// readRecords reads the reservations that something in the cloud names and that are not live in
// this replica: they are over, or another replica has just booked them.
func (d *Doctor) readRecords(ctx context.Context, f *facts) error {
	live := map[string]bool{}
	for _, r := range f.live {
		live[r.ID] = true
	}
	var ids []string
	for id := range named(f) {
		if !live[id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	stored, err := booking.Stored(ctx, d.Records, ids)
	if err != nil {
		return err
	}
	for _, r := range stored {
		if r.Status.Live() {
			f.live = append(f.live, r)
		} else {
			f.over[r.ID] = r
		}
	}
	return nil
}

// named returns the ids of the reservations that something in the cloud names.
func named(f *facts) map[string]bool {
	ids := map[string]bool{}
	for _, step := range fence.Diff(f.layout, fence.Layout{}) {
		if step.Reservation != "" {
			ids[step.Reservation] = true
		}
	}
	for _, h := range f.hosts.Hosts() {
		for i := range h.Instances {
			if id := h.Instances[i].ReservationID(); id != "" {
				ids[id] = true
			}
		}
	}
	return ids
}
