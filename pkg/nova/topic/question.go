// SPDX-License-Identifier: Apache-2.0

package topic

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// question is a call of select_destinations.
type question struct {
	args    map[string]json.RawMessage // unchanged, for passing on
	version string
	spec    object.RequestSpec
	request placing.Request
	// beyond lists what Almanac cannot judge about the request.
	beyond  object.Unsupported
	objects bool // the caller understands Selections
	// held is the reservation that the request names; nil means none.
	held *reservation.Reservation
	// pinned is the only host for best-effort work; empty means any.
	pinned string
}

// read reads a call.
func (s *Service) read(ctx context.Context, r *oslo.Request) (*question, error) {
	q := &question{version: r.Version}
	var args struct {
		Instances  []string `json:"instance_uuids"`
		Objects    bool     `json:"return_objects"`
		Alternates bool     `json:"return_alternates"`
	}
	if r.Decode(&q.args) != nil || r.Decode(&args) != nil {
		return nil, fault.New(fault.Invalid, "the arguments are not those of select_destinations")
	}
	raw, there := q.args["spec_obj"]
	if !there {
		return nil, fault.New(fault.Invalid, "the call has no spec_obj, as callers before version 4.3 make it")
	}
	var err error
	if q.spec, err = object.ReadRequestSpec(raw); err != nil {
		return nil, err
	}
	o := object.Options{ID: r.Context.RequestID(), Instances: args.Instances, Preemptible: s.Rule, Prefilters: s.Prefilters}
	if states := s.States(); states != nil {
		o.Release = states.Nova()
	}
	if args.Alternates {
		o.Alternates = s.Alternates
	}
	if q.request, q.beyond, err = q.spec.Request(o); err != nil {
		return nil, err
	}
	if s.unbound(ctx, q.request.ExtraSpecs[inventory.ReservationMark]) {
		if q.spec, err = q.spec.WithoutExtraSpecs(fence.Binds); err != nil {
			return nil, err
		}
		if q.request, q.beyond, err = q.spec.Request(o); err != nil {
			return nil, err
		}
	}
	if q.request.ProjectID == "" {
		return nil, fault.Field("project_id", "is missing: there is no project for the instances")
	}
	// Nova has not always kept the user (nova/scheduler/utils.py claim_resources).
	q.request.UserID = cmp.Or(q.request.UserID, r.Context.UserID())
	q.objects = args.Objects
	return q, nil
}

// overTimeout bounds the query whether a reservation is over.
const overTimeout = time.Second

// unbound reports whether the reservation of a flavor is over. Nova keeps the flavor with servers
// that outlive the reservation, and sends it when they are moved or unshelved. No host meets the
// flavor's requirements then, and the server may go to any host.
func (s *Service) unbound(ctx context.Context, id string) bool {
	if id == "" || s.Over == nil {
		return false
	}
	if _, live := s.Promises.Promises.Reservation(id); live {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, overTimeout)
	defer cancel()
	over, err := s.Over(ctx, id)
	if err != nil {
		s.Log.WarnContext(ctx, "could not determine whether a reservation is over; its flavor still binds its servers", "reservation", id, "error", err)
	}
	return over
}
