package topic

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/reservation"
)

// question is a call of select_destinations, read.
type question struct {
	args    map[string]json.RawMessage // as they came, to be passed on
	version string
	spec    object.RequestSpec
	request placing.Request
	// beyond is what cannot be judged here.
	beyond  object.Beyond
	objects bool // the caller understands Selections
	// held is the reservation that the request names; nil is none.
	held *reservation.Reservation
	// pinned is the host of best-effort work, which alone will do; empty is any.
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
	if args.Alternates {
		o.Alternates = s.Alternates
	}
	if q.request, q.beyond, err = q.spec.Request(o); err != nil {
		return nil, err
	}
	if q.request.ProjectID == "" {
		return nil, fault.Field("project_id", "is missing: there is no project that the instances are for")
	}
	// Nova has not always kept the user (nova/scheduler/utils.py claim_resources).
	q.request.UserID = cmp.Or(q.request.UserID, r.Context.UserID())
	q.objects = args.Objects
	return q, nil
}
