package topic

import (
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
}

// read reads a call.
func (s *Service) read(ctx context.Context, r *oslo.Request) (*question, error) {
	q := &question{version: r.Version}
	var args struct {
		Instances  []string `json:"instance_uuids"`
		Objects    bool     `json:"return_objects"`
		Alternates bool     `json:"return_alternates"`
	}
	if err := r.Decode(&q.args); err != nil {
		return nil, err
	}
	if err := r.Decode(&args); err != nil {
		return nil, err
	}
	raw, there := q.args["spec_obj"]
	if !there {
		return nil, fault.New(fault.Invalid, "the call has no spec_obj, as callers before version 4.3 make it")
	}
	var err error
	if q.spec, err = object.ReadRequestSpec(raw); err != nil {
		return nil, err
	}
	o := object.Options{ID: r.Context.RequestID(), Instances: args.Instances, Preemptible: s.Rule}
	if args.Alternates {
		o.Alternates = s.Alternates
	}
	if q.request, q.beyond, err = q.spec.Request(o); err != nil {
		return nil, err
	}
	q.objects = args.Objects
	return q, nil
}
