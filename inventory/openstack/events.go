// SPDX-License-Identifier: Apache-2.0

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

// EventOptions configure how Nova's notifications are received. Nova sends them if [DEFAULT]
// notification_format is versioned or both, and [oslo_messaging_notifications] driver is
// messagingv2.
type EventOptions struct {
	Queues oslo.QueueOptions
	// Queue is the prefix of the queues of this process, and unique to it. They receive copies:
	// no other consumer loses notifications.
	Queue string
	// Gather is how long to wait for further events after the first one; 0 means DefaultGather.
	Gather time.Duration
	// Builds counts failed builds; nil means that they are not counted.
	Builds *Builds
	// Also receives all notifications; nil means no call.
	Also func(oslo.Notification)
	// Idle reports whether a notification means no change of hosts; a nil function means that none
	// does.
	Idle func(oslo.Notification) bool
	Log  *slog.Logger
}

// Nova's defaults of control_exchange and [notifications] versioned_notifications_topics.
const (
	novaExchange = "nova"
	novaTopic    = "versioned_notifications"
)

// DefaultGather is longer than Nova takes to update Placement after an event.
const DefaultGather = time.Second

// Events reports that something has changed in Nova, so that a reading of the hosts should not
// wait for the next interval. The next reading corrects for missed events.
type Events struct {
	listener *oslo.Listener
	builds   *Builds
	also     func(oslo.Notification)
	idle     func(oslo.Notification) bool
	gather   time.Duration
	heard    chan struct{}
	changed  chan struct{}
}

// NewEvents returns the events; Serve starts them.
func NewEvents(transport oslo.Transport, o EventOptions) *Events {
	e := &Events{
		builds: o.Builds, also: o.Also, idle: o.Idle, gather: cmp.Or(o.Gather, DefaultGather), heard: make(chan struct{}, 1), changed: make(chan struct{}, 1),
	}
	e.listener = oslo.NewListener(transport, oslo.ListenerOptions{
		Exchange: novaExchange, Topics: []string{novaTopic}, Priorities: []oslo.Priority{oslo.Info, oslo.Error},
		Pool: o.Queue, Own: true, Queues: o.Queues, Handle: e.observe, Log: o.Log,
	})
	return e
}

// Changed receives a value when something has changed since the last value was received.
func (e *Events) Changed() <-chan struct{} { return e.changed }

// Ready is closed once notifications are received.
func (e *Events) Ready() <-chan struct{} { return e.listener.Ready() }

// Serve receives notifications until ctx ends. It returns the errors of oslo.Listener.
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

// pass merges events that come close together into one change.
func (e *Events) pass(ctx context.Context) {
	for {
		select {
		case <-e.heard:
		case <-ctx.Done():
			return
		}
		if job.Pause(ctx, e.gather) != nil {
			return
		}
		select {
		case <-e.heard: // received in the meantime, and part of this change
		default:
		}
		job.Poke(e.changed)
	}
}

// kinds are the prefixes of the types of events that may change hosts.
var kinds = []string{"instance.", "service.", "aggregate.", "compute."}

// idle are the prefixes of those types among them that do not: Nova sends instance.exists for
// every instance regularly, and image caching changes no host.
var idle = []string{"instance.exists", "aggregate.cache_images."}

func begins(text string) func(beginning string) bool {
	return func(beginning string) bool { return strings.HasPrefix(text, beginning) }
}

// observe handles a notification of Nova: it asks for a reading if hosts or instances may have changed.
func (e *Events) observe(_ context.Context, n oslo.Notification) error {
	e.builds.observe(n)
	if e.also != nil {
		e.also(n)
	}
	if slices.ContainsFunc(kinds, begins(n.EventType)) && !slices.ContainsFunc(idle, begins(n.EventType)) && (e.idle == nil || !e.idle(n)) {
		job.Poke(e.heard)
	}
	return nil
}
