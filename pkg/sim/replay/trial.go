// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/sim/site"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/workload"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/tariff"
)

// checkEvery is the number of jobs between two checks whether ctx has ended.
const checkEvery = 1024

// cloud accepts reservations.
type cloud interface {
	Submit(ctx context.Context, by booking.Caller, req reservation.Request) (reservation.Reservation, error)
	End(ctx context.Context, id string) error
}

// alwaysOn is a cloud whose hosts are always on: what is submitted is booked, and what ends is canceled.
type alwaysOn struct{ *sim.Booking }

// Submit implements cloud.
func (d alwaysOn) Submit(ctx context.Context, by booking.Caller, req reservation.Request) (reservation.Reservation, error) {
	return d.Book(ctx, by, req)
}

// End implements cloud.
func (d alwaysOn) End(ctx context.Context, id string) error {
	_, err := d.Cancel(ctx, booking.Caller{Admin: true}, id)
	return err
}

// trial is one replay of the traces under a setting.
type trial struct {
	options  *Options
	setting  *Setting
	survey   *survey
	hosts    []inventory.Host
	timeline *sim.Timeline
	cloud    cloud
	power    *site.Site // nil if hosts are always on
	market   *market    // nil without prices
	zero     span.Instant
	tally    tally
	ctx      context.Context // of calls from the site
	// ahead contains, by reservation, the jobs whose actual start is not known yet.
	ahead map[string]*workload.Job
	// until is the last promised start or known end of a job.
	until span.Instant
}

// result is the result of a trial.
type result struct {
	setting *Setting
	tally   *tally
	hosts   int
	draw    energy.Draw
	power   *site.Totals // nil if hosts are always on
}

func newTrial(ctx context.Context, o *Options, s *Setting, in *survey, hosts []inventory.Host) *trial {
	t := &trial{options: o, setting: s, survey: in, hosts: hosts, zero: in.zero(), ctx: ctx, ahead: map[string]*workload.Job{}}
	t.tally.refusals, t.tally.first, t.tally.last = map[string]int64{}, in.first, in.first
	t.timeline = sim.NewTimeline(t.zero.Add(in.first))
	return t
}

// runTrial replays the traces under a setting; it calls one after each job.
func runTrial(ctx context.Context, o *Options, s *Setting, in *survey, hosts []inventory.Host, one func()) (result, error) {
	return newTrial(ctx, o, s, in, hosts).perform(ctx, one)
}

// perform replays the traces; it calls one after each job.
func (t *trial) perform(ctx context.Context, one func()) (result, error) {
	open := t.openDesk
	if t.setting.Energy.on() {
		open = t.openSite
	}
	err := open(ctx)
	if err == nil {
		err = t.replay(ctx, one)
	}
	if err != nil {
		return result{}, fmt.Errorf("setting %s: %w", t.setting.Name, err)
	}
	return t.result(), nil
}

func (t *trial) replay(ctx context.Context, one func()) error {
	f, err := t.options.open(len(t.hosts))
	if err != nil {
		return err
	}
	if err = t.takeAll(ctx, f, one); err == nil {
		err = t.finish(ctx)
	}
	return errors.Join(err, f.Close())
}

func (t *trial) result() result {
	r := result{setting: t.setting, tally: &t.tally, hosts: len(t.hosts), draw: t.options.Draw}
	if t.power != nil {
		totals := t.power.Finish()
		r.power = &totals
	}
	return r
}

// openDesk makes the trial use a cloud whose hosts are always on.
func (t *trial) openDesk(ctx context.Context) error {
	snapshot, err := inventory.NewSnapshot(t.hosts, nil, nil)
	if err != nil {
		return err
	}
	o := t.setting.booking()
	if m := t.market; m != nil {
		o.Tariff = func() *tariff.Reading { return m.known(t.timeline.Now()) }
		o.FellBack = func(context.Context, *reservation.Reservation, planning.Fallback) { t.tally.fallbacks++ }
	}
	d, err := sim.NewBooking(ctx, t.timeline, snapshot, o)
	t.cloud = alwaysOn{d}
	return err
}

// openSite makes the trial use a cloud whose hosts are switched.
func (t *trial) openSite(ctx context.Context) error {
	o := t.setting.site(*t.options)
	o.Hosts, o.Began = slices.Clone(t.hosts), t.began
	var err error
	t.power, err = site.New(ctx, t.timeline, o)
	t.cloud = t.power
	return err
}

// takeAll schedules the arrival of all jobs.
func (t *trial) takeAll(ctx context.Context, f *feed, one func()) error {
	for jobs := int64(0); ; jobs++ {
		job, err := f.Next()
		if errors.Is(err, io.EOF) && jobs != t.survey.jobs {
			return fault.Field("trace", "it had %d jobs in the first pass, and now has %d: it was changed in between", t.survey.jobs, jobs)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		at := t.zero.Add(job.Submit)
		if err := t.timeline.Run(ctx, at); err != nil {
			return err
		}
		// Ends at the same instant come before the arrival.
		t.timeline.At(at, sim.Arriving, func() error { return t.arrive(ctx, job) })
		one()
	}
}

// finish runs the timeline until the last job is over.
func (t *trial) finish(ctx context.Context) error {
	// The last arrivals are still pending.
	for again := true; again; again = t.timeline.Now() < t.until || len(t.ahead) > 0 {
		if err := t.timeline.Run(ctx, max(t.until, t.timeline.Now()+1)); err != nil {
			return err
		}
	}
	return nil
}

// arrive requests a job.
func (t *trial) arrive(ctx context.Context, job workload.Job) error {
	r, err := t.cloud.Submit(ctx, t.caller(&job), t.request(&job))
	refusal := (*reservation.Refusal)(nil)
	switch {
	case errors.As(err, &refusal):
		t.tally.refusals[string(refusal.Constraint)]++
	case fault.Is(err, fault.Invalid):
		t.tally.refusals[invalid]++
	case err != nil:
		return fmt.Errorf("line %d, job %s: %w", job.Line, job.ID, err)
	}
	if err != nil {
		t.tally.ask(job.Submit, job.Reserved, false, 0, 0)
		return nil
	}
	t.until = max(t.until, r.Span.Start+1)
	if t.power == nil {
		return t.run(ctx, &r, &job, r.Span.Start)
	}
	t.ahead[r.ID] = &job
	return nil
}

// invalid counts, among the constraints, the requests that the service rejects as invalid.
const invalid = "not taken"

func (t *trial) caller(job *workload.Job) booking.Caller {
	by := booking.Caller{ProjectID: "replay"}
	if l := &t.setting.Limits; job.User != "" && (l.Hosts > 0 || l.HostSeconds > 0) {
		by.ProjectID = job.User
	}
	return by
}

// request returns the request for a job. A reserved job requests its own start; any other job a
// start early enough for its deadline, or within its patience.
func (t *trial) request(job *workload.Job) reservation.Request {
	begin := t.zero.Add(job.Submit)
	if job.Reserved {
		begin = t.zero.Add(job.Start)
	}
	booked := job.Booked()
	if job.Deadline != 0 {
		booked = min(booked, int64(t.zero.Add(job.Deadline)-begin))
	}
	req := reservation.Request{Terms: reservation.Terms{Quantity: job.Size}, Duration: booked}
	switch {
	case job.Reserved:
		req.Start = begin
		req.End = begin.Add(booked)
	case job.Deadline != 0:
		req.End = t.zero.Add(job.Deadline)
	default:
		req.End = begin.Add(booked + t.setting.waits(job, booked))
	}
	if t.options.Shapes && !job.Shape.IsZero() {
		req.Kind, req.Resources = reservation.Instances, job.Shape
	}
	return req
}

// began handles a reservation that has all its hosts, or has ended without them, as the site
// reports it.
func (t *trial) began(b site.Beginning) error {
	job := t.ahead[b.Reservation.ID]
	if job == nil {
		return nil
	}
	delete(t.ahead, b.Reservation.ID)
	return t.run(t.ctx, &b.Reservation, job, b.At)
}

// run starts a job at begin: the promised start, or a later instant if its hosts were late. The job
// is booked for the estimate of its user; when it is done, the rest of its booking becomes free.
func (t *trial) run(ctx context.Context, r *reservation.Reservation, job *workload.Job, begin span.Instant) error {
	t.tally.ask(job.Submit, job.Reserved, true, int64(begin-t.zero)-job.Submit, job.Runtime)
	end := begin.Add(job.Runtime)
	if end > r.Span.End {
		t.tally.cut++
		end = max(begin, r.Span.End)
	}
	t.until = max(t.until, end)
	t.tally.use(int64(begin-t.zero), int64(end-t.zero), t.weight(job))
	if m := t.market; m != nil {
		t.tally.paid += t.weight(job) * m.cost(span.Span{Start: begin, End: end})
	}
	if end < r.Span.End {
		id := r.ID
		t.timeline.At(end, sim.Ending, func() error { return t.cloud.End(ctx, id) })
	}
	return nil
}

// weight returns how many hosts a job occupies. For a job that shares hosts this is its share of
// all VCPUs, or of all memory if it requests no VCPUs.
func (t *trial) weight(job *workload.Job) float64 {
	if !t.options.Shapes || job.Shape.IsZero() {
		return float64(job.Size)
	}
	var all resource.Vector
	for i := range t.hosts {
		all = all.Add(t.hosts[i].Capacity)
	}
	share := float64(job.Shape.VCPUs) / float64(max(1, all.VCPUs))
	if job.Shape.VCPUs == 0 {
		share = float64(job.Shape.MemoryMB) / float64(max(1, all.MemoryMB))
	}
	return share * float64(job.Size*len(t.hosts))
}
