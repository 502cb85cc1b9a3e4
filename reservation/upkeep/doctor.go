package upkeep

import (
	"context"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// FindingKind says what sort of thing is not as it should be.
type FindingKind string

// The kinds.
const (
	FenceIgnored   FindingKind = "fence_ignored"            // Nova places others' instances on fenced hosts
	TwoOwners      FindingKind = "host_in_two_reservations" // in the aggregates of both
	Stranger       FindingKind = "stranger"                 // an instance on a reserved host that does not belong there
	Missing        FindingKind = "missing"                  // a part of the layout that should be there
	Altered        FindingKind = "altered"                  // metadata or extra specs that are not as Almanac sets them
	VanishedHost   FindingKind = "vanished_host"            // promised, and not in the cloud any more
	VanishedOwner  FindingKind = "vanished_project"         // has live reservations, and is not in Keystone any more
	Unpinned       FindingKind = "besteffort_unpinned"      // Nova chooses the hosts of best-effort work
	Idle           FindingKind = "without_effect"           // a setting that cannot act in the mode
	Leftover       FindingKind = "leftover"                 // an instance of a reservation that is over
	StaleNotice    FindingKind = "stale_notice"             // an instance whose owner was told that it has to go, and it stays
	Unplaced       FindingKind = "error_allocation"         // an instance in ERROR on no host that has something in Placement
	Misplaced      FindingKind = "misplaced"                // a host with things of which it should have none
	OrphanGroup    FindingKind = "orphan_aggregate"         // that nothing needs; likewise the others
	OrphanFlavor   FindingKind = "orphan_flavor"            //
	OrphanTrait    FindingKind = "orphan_trait"             //
	OrphanResource FindingKind = "orphan_class"             // a resource class
)

// FindingKinds are all kinds, in the order in which they are given and treated: what
// closes a gap comes first.
var FindingKinds = []FindingKind{
	FenceIgnored, TwoOwners, Stranger, Missing, Altered, VanishedHost, VanishedOwner, Unpinned, Idle, Leftover, StaleNotice, Unplaced, Misplaced,
	OrphanGroup, OrphanFlavor, OrphanTrait, OrphanResource,
}

// Finding is one thing that is not as it should be. Kind and Subject together are
// found once.
type Finding struct {
	Kind    FindingKind
	Subject string // the name of the host, aggregate, flavor, …, or the id of the instance or project
	Message string // what is wrong, in a sentence
	Remedy  string // what to do, or what Fix does
	Fixable bool   // by Fix
	// Outcome is what became of it; empty in a report. Detail says why it was refused
	// or has failed.
	Outcome Outcome
	Detail  string
}

// Outcome is what became of a finding.
type Outcome string

// The outcomes. A planned one is what Fix would do.
const (
	Planned Outcome = "planned"
	Fixed   Outcome = "fixed"
	Refused Outcome = "refused" // it takes something away, and the inventory is in doubt
	Undone  Outcome = "failed"
)

// Examination is what a Doctor saw.
type Examination struct {
	// Cloud says that there is a cloud; without one only what the inventory and
	// Keystone tell is examined.
	Cloud bool
	// Doubt says why the inventory is not to be trusted now; empty where it is. Then
	// Fix takes nothing away.
	Doubt    string
	Findings []Finding // by kind, then subject
}

// Projects knows whose projects there are.
type Projects interface {
	// Exists says whether there is a project with that id, and fails where that cannot
	// be told.
	Exists(ctx context.Context, project string) (bool, error)
}

// Canceller gives reservations up.
type Canceller interface {
	Cancel(ctx context.Context, by booking.Caller, id string) (reservation.Reservation, error)
}

// Claims are what instances have in Placement.
type Claims interface {
	// Unplaced returns instances in ERROR, for some time before now, that are on no host and
	// have something all the same.
	Unplaced(ctx context.Context, now span.Instant) ([]inventory.Instance, error)
	// Release takes what such an instance has. It fails with a Conflict fault where the
	// instance is no longer so.
	Release(ctx context.Context, instance string) error
}

// Doctor finds where the reservations, what lies on the cloud for them, the instances
// and the projects contradict each other, and mends it when told to.
type Doctor struct {
	Promises Promises
	Records  Records
	Snapshot func() *inventory.Snapshot
	Doubt    func() string
	// Ground and Guests are the cloud; nil where there is none.
	Ground Ground
	Guests Guests
	// Claims is nil where there is no cloud.
	Claims Claims
	// Notices are those of evictions; nil where there is no cloud.
	Notices *Notices
	// Projects is nil where there is no Keystone.
	Projects  Projects
	Canceller Canceller
	Rules     fence.Rules
	// Fill says that preemptible instances may use what the owners of active reservations
	// leave unused.
	Fill bool
	// Resting gives those of the servers that best-effort work has suspended, with their room
	// taken away; nil where there is none.
	Resting func(ctx context.Context, servers ...string) (map[string]bool, error)
	// Unpinned says why best-effort work may not run where it is planned; empty where it does.
	Unpinned string
	// Idle are settings that cannot act as Almanac is configured, by their option, with why.
	Idle map[string]string
	Now  func() span.Instant
}

// Examine reports and changes nothing.
func (d *Doctor) Examine(ctx context.Context) (Examination, error) {
	return d.each(ctx, func(*trouble) {})
}

// Plan reports what Fix would do, and changes nothing.
func (d *Doctor) Plan(ctx context.Context) (Examination, error) {
	return d.each(ctx, func(t *trouble) {
		t.Outcome = Planned
		if t.takes() {
			t.settle(d.certain())
		}
	})
}

// Fix examines anew and mends what it can, and gives all findings with what became of
// each. Where the inventory is in doubt it takes nothing away. It may be called again.
func (d *Doctor) Fix(ctx context.Context, by booking.Caller) (Examination, error) {
	return d.each(ctx, func(t *trouble) {
		t.Outcome = Fixed
		t.settle(d.treat(ctx, by, t))
	})
}

// each examines, and does do with what can be fixed.
func (d *Doctor) each(ctx context.Context, do func(t *trouble)) (Examination, error) {
	seen, err := d.look(ctx)
	if err != nil {
		return Examination{}, err
	}
	e := Examination{Cloud: d.Ground != nil, Doubt: seen.doubt, Findings: []Finding{}}
	for _, t := range judge(seen) {
		if t.Fixable {
			do(&t)
		}
		e.Findings = append(e.Findings, t.Finding)
	}
	return e, nil
}

// facts are all that is judged, at one time.
type facts struct {
	live   []reservation.Reservation
	over   map[string]reservation.Reservation // of which something is left on the cloud, by id
	layout fence.Layout
	cloud  bool // layout says what there is
	hosts  *inventory.Snapshot
	gone   map[string]bool // projects that are not there any more
	doubt  string
	rules  fence.Rules
	fill   bool
	now    span.Instant
	// resting are servers that best-effort work has suspended.
	resting  map[string]bool
	unpinned string
	idle     map[string]string
	// noticed are instances with the notice of an eviction that is over.
	noticed []inventory.Instance
	// unplaced are instances in ERROR on no host that have something in Placement.
	unplaced []inventory.Instance
}

// look gathers the facts. The layout comes first: what lies there then belongs to a
// reservation that the records know by then.
func (d *Doctor) look(ctx context.Context) (f facts, err error) {
	f = facts{cloud: d.Ground != nil, rules: d.Rules, fill: d.Fill, unpinned: d.Unpinned, idle: d.Idle, over: map[string]reservation.Reservation{}, gone: map[string]bool{}}
	if d.Ground != nil {
		if f.layout, err = d.Ground.Layout(ctx); err != nil {
			return f, told(err, "look what lies on the cloud")
		}
	}
	f.hosts, f.doubt, f.now = d.Snapshot(), d.Doubt(), d.Now()
	f.live = d.Promises.Live(always)
	if d.Notices != nil {
		f.noticed = d.Notices.stale(f.hosts, f.now)
	}
	if d.Claims != nil {
		if f.unplaced, err = d.Claims.Unplaced(ctx, f.now); err != nil {
			return f, told(err, "look what instances in ERROR have in Placement")
		}
	}
	if f.resting, err = d.rest(ctx, f.hosts); err != nil {
		return f, told(err, "read what best-effort work has suspended")
	}
	if err := d.recall(ctx, &f); err != nil {
		return f, told(err, "read the reservations of which something is on the cloud")
	}
	for _, r := range f.live {
		if _, asked := f.gone[r.ProjectID]; asked || d.Projects == nil {
			continue
		}
		there, err := d.Projects.Exists(ctx, r.ProjectID)
		if err != nil {
			return f, told(err, "ask Keystone for project %s", r.ProjectID)
		}
		f.gone[r.ProjectID] = !there
	}
	return f, nil
}

// rest gives the servers that best-effort work has suspended: they may be on hosts that
// others have.
func (d *Doctor) rest(ctx context.Context, hosts *inventory.Snapshot) (map[string]bool, error) {
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

// recall reads the reservations that the cloud names and that are not live here: they
// are over, or another replica has just booked them.
func (d *Doctor) recall(ctx context.Context, f *facts) error {
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
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	stored, err := d.Records.Recall(ctx, booking.Recall{Since: math.MaxInt64, IDs: ids})
	if err != nil {
		return err
	}
	for _, r := range stored.Reservations {
		switch {
		case !slices.Contains(ids, r.ID): // the live ones on their hosts come with them
		case r.Status.Live():
			f.live = append(f.live, r)
		default:
			f.over[r.ID] = r
		}
	}
	return nil
}

// named are the reservations that something on the cloud names.
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
