package openstack

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// EventOptions are how Nova's notifications are heard. Nova sends them where [DEFAULT]
// notification_format is versioned or both, and [oslo_messaging_notifications] driver
// is messagingv2.
type EventOptions struct {
	Exchange string   // control_exchange of Nova; empty is nova
	Topics   []string // [notifications] versioned_notifications_topics; none is versioned_notifications
	Queues   oslo.QueueOptions
	// Queue begins the names of the queues of this process; nobody else has it. What
	// comes there is a copy: nobody's notifications are taken away.
	Queue string
	// Gather is how long after a change its followers are waited for; 0 is DefaultGather.
	Gather time.Duration
	// Builds, where it is not nil, counts those that have failed.
	Builds *Builds
	// Also, where it is not nil, is told all that Nova says.
	Also func(oslo.Notification)
	// Idle, where it is not nil, says that a notification tells of no change.
	Idle func(oslo.Notification) bool
	Log  *slog.Logger
}

// DefaultGather is more than Nova takes after an event to make Placement follow.
const DefaultGather = time.Second

// Events tells when something has changed in Nova, so that the hosts are worth a
// reading before the next one is due. What is missed, the next reading finds.
type Events struct {
	listener *oslo.Listener
	builds   *Builds
	also     func(oslo.Notification)
	idle     func(oslo.Notification) bool
	gather   time.Duration
	heard    chan struct{}
	changed  chan struct{}
}

// NewEvents gives the events; Serve starts them.
func NewEvents(transport oslo.Transport, o EventOptions) *Events {
	e := &Events{
		builds: o.Builds, also: o.Also, idle: o.Idle, gather: cmp.Or(o.Gather, DefaultGather), heard: make(chan struct{}, 1), changed: make(chan struct{}, 1),
	}
	if len(o.Topics) == 0 {
		o.Topics = []string{"versioned_notifications"}
	}
	e.listener = oslo.NewListener(transport, oslo.ListenerOptions{
		Exchange: cmp.Or(o.Exchange, "nova"), Topics: o.Topics, Priorities: []oslo.Priority{oslo.Info, oslo.Error},
		Pool: o.Queue, Own: true, Queues: o.Queues, Handle: e.hear, Log: o.Log,
	})
	return e
}

// Changed has a value when something has changed since the last one was taken.
func (e *Events) Changed() <-chan struct{} { return e.changed }

// Ready is closed once the events are heard.
func (e *Events) Ready() <-chan struct{} { return e.listener.Ready() }

// Serve hears events until ctx ends. It fails as oslo.Listener does.
func (e *Events) Serve(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	told := make(chan struct{})
	go func() {
		defer close(told)
		e.pass(ctx)
	}()
	err := e.listener.Serve(ctx)
	stop()
	<-told
	return err
}

// pass makes one change of the events that come close together.
func (e *Events) pass(ctx context.Context) {
	for {
		select {
		case <-e.heard:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(e.gather):
		case <-ctx.Done():
			return
		}
		select {
		case <-e.heard: // meanwhile, and part of this change
		default:
		}
		job.Poke(e.changed)
	}
}

// kinds begin the types of the events after which the hosts may look different.
var kinds = []string{"instance.", "service.", "aggregate.", "compute."}

// idle begin the types of those of these after which they do not: Nova says instance.exists
// of every instance now and then, and images say nothing of hosts.
var idle = []string{"instance.exists", "aggregate.cache_images."}

func begins(text string) func(beginning string) bool {
	return func(beginning string) bool { return strings.HasPrefix(text, beginning) }
}

func (e *Events) hear(_ context.Context, n oslo.Notification) error {
	e.builds.hear(n)
	if e.also != nil {
		e.also(n)
	}
	if slices.ContainsFunc(kinds, begins(n.EventType)) && !slices.ContainsFunc(idle, begins(n.EventType)) && (e.idle == nil || !e.idle(n)) {
		job.Poke(e.heard)
	}
	return nil
}
