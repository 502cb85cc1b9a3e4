// Package topic serves Nova's topic "scheduler": it answers nova-conductor's
// select_destinations, which asks on which hosts instances shall run
// (nova/scheduler/rpcapi.py, nova/scheduler/manager.py).
//
// A request is read, and it is seen which reservation it names. Then it is either
// decided here, or narrowed to the hosts it may use and passed on to a stock
// nova-scheduler on another virtual host of the message broker, whose answer is given
// unchanged.
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
	// Version is the newest of the topic that is spoken: those from 4.0 on are.
	Version = "4.5"
)

// Scheduler is the nova-scheduler that requests are passed on to.
type Scheduler interface {
	Call(ctx context.Context, target oslo.Target, method string, args, result any) error
	Fanout(ctx context.Context, target oslo.Target, method string, args any) error
}

// Placer decides and claims.
type Placer interface {
	Place(ctx context.Context, r *placing.Request) (dispatch.Placed, error)
	// Return takes back what Place has given.
	Return(p dispatch.Placed)
}

// Decisions keeps what was decided. Keep does not wait.
type Decisions interface {
	Keep(d placing.Decision)
}

// Options are what a Service is made of.
type Options struct {
	// Placer decides; nil has everything passed on.
	Placer Placer
	// Behind is where requests are passed on to; nil where there is none.
	Behind   Scheduler
	Promises filters.Reservation
	Guests   admission.InstanceRecords // nil remembers nothing
	// Over reports whether the records have a reservation as over; nil knows of none. A
	// flavor that was made for one binds its servers to no host any more.
	Over     func(ctx context.Context, id string) (bool, error)
	Pins     admission.Pins      // nil where there is no best-effort work
	Filters  []filters.Filter    // of the Placer: some cannot judge every request
	Weighers []weighers.Weighted // of the Placer: some cannot weigh every request
	// Alternates is how many further hosts are given with each, to a caller who wants some.
	Alternates int
	States     func() *inventory.States
	Rule       inventory.PreemptibleRule
	// Prefilters are those that the nova-scheduler of this cloud runs.
	Prefilters object.Prefilters
	Decisions  Decisions
	// Answered is told of each answer how long it took, and whether it has hosts; nil is not.
	Answered func(took time.Duration, placed bool)
	// Changed is told that something has changed on the cloud.
	Changed func()
	// Freed is told of a host that an instance has left.
	Freed func(host string)
	// Started is told of a host whose nova-compute has started and found instances there.
	Started func(host string)
	// Waits reports whether Nova is still at work on an instance; nil does not tell. It is
	// asked about old requests only.
	Waits func(ctx context.Context, instance string) (bool, error)
	// Reread has the States show what the cloud has now; nil leaves them as they are.
	Reread  func(ctx context.Context) error
	Now     func() span.Instant
	Elapsed func() time.Duration // a stopwatch
	Log     *slog.Logger
}

// Service answers on the topic. Between requests it keeps only what casts have told, which
// each server hears; any number of replicas may share the topic.
type Service struct {
	Options
	news news
}

// Endpoints are what an oslo.Server of the topic serves.
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

// casts tell every scheduler what has changed (nova/scheduler/rpcapi.py).
var casts = []string{"update_aggregates", "delete_aggregate", "update_instance_info", "delete_instance_info", "sync_instance_info"}

// follow takes a cast over, and passes it on.
func (s *Service) follow(ctx context.Context, r *oslo.Request) (any, error) {
	switch r.Method {
	case "update_aggregates", "delete_aggregate":
		s.news.take()
	case "delete_instance_info":
		if host := s.hostOf(ctx, r); host != "" {
			s.Freed(host)
		}
	case "update_instance_info":
		host := s.hostOf(ctx, r)
		if host != "" && hasMigrated(r) {
			s.Freed(host)
		}
		// Else it tells of what a user has done (nova/compute/manager.py init_host).
		if host != "" && r.Context.UserID() == "" {
			s.Started(host)
		}
	}
	// Every compute syncs every two minutes, whether something has changed or not.
	if r.Method != "sync_instance_info" {
		s.Changed()
	}
	if s.Behind == nil {
		return nil, nil
	}
	if err := s.Behind.Fanout(ctx, oslo.Target{Exchange: Exchange, Topic: Topic, Version: r.Version}, r.Method, r.Args); err != nil {
		s.Log.WarnContext(ctx, "a cast was not passed on to nova-scheduler, which learns of it later", "method", r.Method, "error", err)
	}
	return nil, nil
}

// hostOf gives the host that a cast is about; empty where that cannot be read.
func (s *Service) hostOf(ctx context.Context, r *oslo.Request) string {
	var args struct {
		Host string `json:"host_name"`
	}
	if err := r.Decode(&args); err != nil {
		s.Log.WarnContext(ctx, "the host of a cast cannot be read", "method", r.Method, "error", err)
	}
	return args.Host
}

// ping and backdoor are what every service of Nova answers (nova/baserpc.py).
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
