// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// practice is a doctor that always returns the same finding and records the calls.
type practice struct {
	asked []string
	by    booking.Caller
	err   error
}

func (p *practice) Examine(context.Context) (upkeep.Examination, error) {
	return p.note("examine", "")
}
func (p *practice) Plan(context.Context) (upkeep.Examination, error) {
	return p.note("plan", upkeep.FixPlanned)
}
func (p *practice) Fix(_ context.Context, by booking.Caller) (upkeep.Examination, error) {
	p.by = by
	return p.note("fix", upkeep.FixRefused)
}

func (p *practice) note(what string, outcome upkeep.Outcome) (upkeep.Examination, error) {
	p.asked = append(p.asked, what)
	f := upkeep.Finding{Kind: upkeep.OrphanFlavor, Subject: "reservation:r1", Message: "it is left", Remedy: "the fix deletes it", Fixable: true, Outcome: outcome}
	if outcome == upkeep.FixRefused {
		f.Detail = "in doubt"
	}
	return upkeep.Examination{Cloud: true, Untrusted: "the hosts are old", Findings: []upkeep.Finding{f}}, p.err
}

func TestTheDoctorReportsAndActsOnlyWhenTold(t *testing.T) {
	p := &practice{}
	c := start(t, setup{adjust: func(o *api.Options) { o.Doctor = p }})
	want := v1.Examination{Cloud: true, Untrusted: "the hosts are old", Findings: []v1.Finding{
		{Kind: "orphan_flavor", Subject: "reservation:r1", Message: "it is left", Remedy: "the fix deletes it", Fixable: true},
	}}
	for _, ask := range []struct{ body, outcome, detail string }{{"", "", ""}, {`{"dry_run": true}`, "planned", ""}, {`{}`, "refused", "in doubt"}} {
		a := c.admin.get("/v1/doctor")
		if ask.body != "" {
			a = c.admin.post("/v1/doctor", ask.body)
		}
		want.Findings[0].Outcome, want.Findings[0].Detail = ask.outcome, ask.detail
		if diff := cmp.Diff(want, decode[v1.Examination](t, a)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", ask.body, diff)
		}
	}
	if diff := cmp.Diff([]string{"examine", "examine", "plan", "examine", "fix"}, p.asked); diff != "" {
		t.Errorf("the doctor was asked (-want +got):\n%s", diff)
	}
	if !p.by.Admin || p.by.RequestID == "" {
		t.Errorf("the fix is by %+v", p.by)
	}
}

func TestWhereThereIsNoDoctorTheAnswerSaysSo(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.Doctor = nil }})
	wantError(t, c.admin.get("/v1/doctor"), http.StatusNotFound)
	wantError(t, c.admin.post("/v1/doctor", "{}"), http.StatusNotFound)
}

func TestADoctorThatCannotLookSaysToTryAgain(t *testing.T) {
	p := &practice{err: fault.New(fault.Unavailable, "read the fence in OpenStack: Placement answers 503")}
	c := start(t, setup{adjust: func(o *api.Options) { o.Doctor = p }})
	wantError(t, c.admin.get("/v1/doctor"), http.StatusServiceUnavailable)
}

func TestAnUnknownFieldDoesNotFix(t *testing.T) {
	p := &practice{}
	c := start(t, setup{adjust: func(o *api.Options) { o.Doctor = p }})
	if e := wantError(t, c.admin.post("/v1/doctor", `{"dryrun": true}`), http.StatusBadRequest); e.Field != "dryrun" {
		t.Errorf("the field at fault is %q", e.Field)
	}
	if len(p.asked) > 0 {
		t.Errorf("the doctor was asked to %v", p.asked)
	}
}

func TestAVanishedHostOfACloudlessAlmanacIsFound(t *testing.T) {
	booked := start(t, setup{})
	booked.demo.book(`{"name": "r", "duration": 3600, "quantity": 3}`)
	left, err := inventory.NewSnapshot([]inventory.Host{machine("A"), machine("B")}, nil, nil)
	must(t, err)
	c := start(t, setup{adjust: func(o *api.Options) {
		o.Doctor = &upkeep.Doctor{
			Promises: booked.bookings, Records: booked.store, Snapshot: func() *inventory.Snapshot { return left }, Untrusted: func() string { return "" }, Now: booked.now,
		}
	}})
	seen := decode[v1.Examination](t, c.admin.get("/v1/doctor"))
	if len(seen.Findings) != 1 || seen.Cloud || seen.Findings[0].Kind != "vanished_host" || seen.Findings[0].Subject != "C" {
		t.Errorf("the doctor finds %+v", seen)
	}
}

func TestTheDocumentHasTheKindsOfFindings(t *testing.T) {
	finding := openContract(t).document.Components.Schemas["Finding"].Value.Properties
	if diff := cmp.Diff(anyOf(upkeep.FindingKinds...), finding["kind"].Value.Enum); diff != "" {
		t.Errorf("the kinds (-known +listed):\n%s", diff)
	}
	if diff := cmp.Diff(anyOf(upkeep.FixPlanned, upkeep.FixDone, upkeep.FixRefused, upkeep.FixFailed), finding["outcome"].Value.Enum); diff != "" {
		t.Errorf("the outcomes (-known +listed):\n%s", diff)
	}
}
