// SPDX-License-Identifier: Apache-2.0

// Package topic serves Nova's topic "scheduler": it answers nova-conductor's select_destinations,
// which asks for the hosts of instances (nova/scheduler/rpcapi.py, nova/scheduler/manager.py).
//
// It finds the reservation that a request names. Then it decides the request, or restricts it to
// the hosts that it may use and passes it on to an unmodified nova-scheduler on another virtual
// host of the message broker. It returns that answer unchanged.
package topic

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/admission"
	"github.com/almanac-cloud/almanac/weighers"
)

// Nova's names (nova/scheduler/rpcapi.py, nova/config.py).
const (
	Exchange = "nova"
	Topic    = "scheduler"
	// Version is the newest version of the topic that Almanac supports; the oldest is 4.0.
	Version = "4.5"
)

// Scheduler is the nova-scheduler to which requests are passed on.
type Scheduler interface {
	Call(ctx context.Context, target oslo.Target, method string, args, result any) error
	Fanout(ctx context.Context, target oslo.Target, method string, args any) error
}

// Placer decides and claims.
type Placer interface {
	Place(ctx context.Context, r *placing.Request) (dispatch.Placed, error)
	// Return releases what Place has claimed.
	Return(p dispatch.Placed)
}

// Decisions stores decisions. Keep does not wait.
type Decisions interface {
	Keep(d placing.Decision)
}

// Options are the dependencies and settings of a Service.
type Options struct {
	// Placer decides requests; nil means that all are passed on.
	Placer Placer
	// Behind receives the requests that are passed on; nil if there is none.
	Behind   Scheduler
	Promises filters.Reservation
	Records  admission.InstanceRecords // nil stores nothing
	// Over reports whether a reservation is over; its flavor then no longer binds its servers. A
	// nil function means that none is.
	Over     func(ctx context.Context, id string) (bool, error)
	Pins     admission.Pins      // nil if there is no best-effort work
	Filters  []filters.Filter    // of the Placer: some cannot judge every request
	Weighers []weighers.Weighted // of the Placer: some cannot weigh every request
	// Alternates is the number of further hosts in an answer to a caller that supports them.
	Alternates int
	States     func() *inventory.States
	Rule       inventory.PreemptibleRule
	// Prefilters are the request filters of this cloud's nova-scheduler.
	Prefilters object.Prefilters
	Decisions  Decisions
	// Answered is called for each answer, with its time and whether it has hosts; nil means none.
	Answered func(took time.Duration, placed bool)
	// Changed is called when something has changed on the cloud.
	Changed func()
	// Freed is called for a host that an instance has left.
	Freed func(host string)
	// Started is called for a host whose nova-compute has started and found instances there.
	Started func(host string)
	// Waits reports whether Nova still works on an instance; it is called only for old requests. A
	// nil function means that Nova always does.
	Waits func(ctx context.Context, instance string) (bool, error)
	// Reread updates the States from the cloud; a nil function means that they stay as they are.
	Reread  func(ctx context.Context) error
	Now     func() span.Instant
	Elapsed func() time.Duration // a stopwatch
	Log     *slog.Logger
}

// Service answers on the topic. Between requests it stores only the casts, which every server
// receives; any number of replicas may share the topic.
type Service struct {
	Options
	news news
}

// Endpoints returns the endpoints for an oslo.Server of the topic.
func (s *Service) Endpoints() []oslo.Endpoint {
	methods := map[string]oslo.Handler{"select_destinations": s.selectDestinations}
	for _, cast := range casts {
		methods[cast] = s.follow
	}
	return []oslo.Endpoint{
		{Version: Version, Methods: methods},
		{Namespace: "baseapi", Version: "1.1", Methods: map[string]oslo.Handler{"ping": ping, "get_backdoor_port": backdoor}},
	}
}

// casts are the methods that announce changes to all schedulers (nova/scheduler/rpcapi.py).
var casts = []string{"update_aggregates", "delete_aggregate", "update_instance_info", "delete_instance_info", "sync_instance_info"}

// follow handles a cast and passes it on.
func (s *Service) follow(ctx context.Context, r *oslo.Request) (any, error) {
	switch r.Method {
	case "update_aggregates", "delete_aggregate":
		s.news.add()
	case "delete_instance_info":
		if host := s.hostOf(ctx, r); host != "" {
			s.Freed(host)
		}
	case "update_instance_info":
		host := s.hostOf(ctx, r)
		if host != "" && hasMigrated(r) {
			s.Freed(host)
		}
		// With a user, the cast is about an action of that user (nova/compute/manager.py
		// init_host).
		if host != "" && r.Context.UserID() == "" {
			s.Started(host)
		}
	}
	// Every nova-compute syncs every two minutes, with or without changes.
	if r.Method != "sync_instance_info" {
		s.Changed()
	}
	if s.Behind == nil {
		return nil, nil
	}
	if err := s.Behind.Fanout(ctx, oslo.Target{Exchange: Exchange, Topic: Topic, Version: r.Version}, r.Method, r.Args); err != nil {
		s.Log.WarnContext(ctx, "could not pass a cast on to nova-scheduler, which learns of the change later", "method", r.Method, "error", err)
	}
	return nil, nil
}

// hostOf returns the host that a cast is about; empty if it is unreadable.
func (s *Service) hostOf(ctx context.Context, r *oslo.Request) string {
	var args struct {
		Host string `json:"host_name"`
	}
	if err := r.Decode(&args); err != nil {
		s.Log.WarnContext(ctx, "could not read the host of a cast", "method", r.Method, "error", err)
	}
	return args.Host
}

// ping and backdoor are the methods of every service of Nova (nova/baserpc.py).
func ping(_ context.Context, r *oslo.Request) (any, error) {
	var args struct {
		Arg json.RawMessage `json:"arg"`
	}
	if err := r.Decode(&args); err != nil {
		return nil, err
	}
	return map[string]any{"service": Topic, "arg": args.Arg}, nil
}

func backdoor(context.Context, *oslo.Request) (any, error) { return nil, nil }
