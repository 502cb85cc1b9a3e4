// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// practice is a doctor with a cloud of three hosts and reservations.
type practice struct {
	t         *testing.T
	cloud     *modelCloud
	stored    map[string]reservation.Reservation
	gone      map[string]bool // projects
	untrusted string
	now       span.Instant
	doctor    *upkeep.Doctor
}

func newPractice(t *testing.T, reservations ...reservation.Reservation) *practice {
	w := &practice{
		t: t, cloud: newModelCloud("a", "b", "c"), stored: map[string]reservation.Reservation{}, gone: map[string]bool{}, now: 10_000,
	}
	for _, r := range reservations {
		w.stored[r.ID] = r
	}
	w.doctor = &upkeep.Doctor{
		Promises: w, Records: w, Snapshot: w.cloud.inventory, Untrusted: func() string { return w.untrusted },
		Fence: w.cloud, Instances: w.cloud, Projects: w, Canceler: w,
		Rules: fence.Rules{Ahead: 3600, Prepare: 600}, Now: func() span.Instant { return w.now },
	}
	return w
}

func (w *practice) Live(span.Span) (live []reservation.Reservation) {
	for _, r := range w.stored {
		if r.Status.Live() {
			live = append(live, r)
		}
	}
	slices.SortFunc(live, func(a, b reservation.Reservation) int { return strings.Compare(a.ID, b.ID) })
	return live
}

func (w *practice) Reservation(id string) (reservation.Reservation, bool) {
	r, ok := w.stored[id]
	return r, ok && r.Status.Live()
}

func (w *practice) Recall(_ context.Context, q booking.Recall) (got booking.Recalled, _ error) {
	for _, id := range q.IDs {
		if r, ok := w.stored[id]; ok {
			got.Reservations = append(got.Reservations, r)
		}
	}
	return got, nil
}

func (w *practice) Exists(_ context.Context, project string) (bool, error) {
	return !w.gone[project], nil
}

func (w *practice) Cancel(_ context.Context, _ booking.Caller, id string) (reservation.Reservation, error) {
	r := w.stored[id]
	r.Status = reservation.Canceled
	w.stored[id] = r
	return r, nil
}

// CancelLease cancels the reservations of a lease; the lease is gone then.
func (w *practice) CancelLease(ctx context.Context, by booking.Caller, id string) (l reservation.LeaseRecord, err error) {
	for _, r := range w.Live(span.Span{}) {
		if r.Membership.LeaseID == id {
			r, _ = w.Cancel(ctx, by, r.ID)
			l.Reservations = append(l.Reservations, r)
		}
	}
	if len(l.Reservations) == 0 {
		return l, booking.NoLease(id)
	}
	return l, nil
}

// lay brings the cloud into the state that the live reservations require.
func (w *practice) lay() {
	w.t.Helper()
	layout, err := w.cloud.Layout(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, step := range fence.Diff(layout, fence.Desired(w.Live(span.Span{}), w.cloud.inventory(), w.now, w.doctor.Rules)) {
		w.carry(step)
	}
	for _, r := range w.Live(span.Span{}) {
		if err := w.cloud.Admit(w.t.Context(), r); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *practice) carry(step fence.Step) {
	w.t.Helper()
	if err := w.cloud.Carry(w.t.Context(), step); err != nil {
		w.t.Fatal(err)
	}
}

func (w *practice) set(id string, status reservation.Status) {
	r := w.stored[id]
	r.Status = status
	w.stored[id] = r
}

// found returns "kind subject" of all findings.
func (w *practice) found() []string {
	w.t.Helper()
	seen, err := w.doctor.Examine(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	list := []string{}
	for _, f := range seen.Findings {
		list = append(list, fmt.Sprint(f.Kind, " ", f.Subject))
		if f.Message == "" || f.Remedy == "" {
			w.t.Errorf("%s of %s has the message %q and the remedy %q", f.Kind, f.Subject, f.Message, f.Remedy)
		}
	}
	return list
}

// fix returns "kind subject: outcome" of all findings that Fix can treat.
func (w *practice) fix() []string {
	w.t.Helper()
	seen, err := w.doctor.Fix(w.t.Context(), booking.Caller{Admin: true})
	return w.outcomes(seen, err)
}

// plan returns the same for Plan.
func (w *practice) plan() []string {
	w.t.Helper()
	return w.outcomes(w.doctor.Plan(w.t.Context()))
}

func (w *practice) outcomes(seen upkeep.Examination, err error) []string {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	list := []string{}
	for _, f := range seen.Findings {
		list = append(list, fmt.Sprint(f.Kind, " ", f.Subject, ": ", f.Outcome))
		if bad := f.Outcome == upkeep.FixFailed || f.Outcome == upkeep.FixRefused; bad != (f.Detail != "") || f.Fixable == (f.Outcome == "") {
			w.t.Errorf("%s of %s has the outcome %q with the detail %q", f.Kind, f.Subject, f.Outcome, f.Detail)
		}
	}
	return list
}

func (w *practice) want(what string, got []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// whole returns an active reservation of hosts; half one of instances, two on each host.
func whole(id string, hosts ...string) reservation.Reservation {
	r := reservation.Reservation{
		ID: id, ProjectID: "p-" + id, Status: reservation.Active, Span: span.Span{Start: 9_000, End: 20_000},
		Terms: reservation.Terms{Kind: reservation.Hosts, Quantity: len(hosts), OnEnd: reservation.OnEndDelete},
	}
	for _, h := range hosts {
		r.Claims = append(r.Claims, reservation.Claim{Host: h, Span: r.Span})
	}
	return r
}

func half(id string, hosts ...string) reservation.Reservation {
	r := whole(id, hosts...)
	r.Kind, r.Resources = reservation.Instances, resource.Vector{VCPUs: 1, MemoryMB: 512}
	for i := range r.Claims {
		r.Claims[i].Slices = 2
	}
	return r
}
