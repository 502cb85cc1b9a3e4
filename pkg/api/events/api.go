// SPDX-License-Identifier: Apache-2.0

package events

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Options are what the streams of events need.
type Options struct {
	Promises Promises
	// Snapshot returns the hosts.
	Snapshot func() *inventory.Snapshot
	Limits   Limits
	// Replica is the name of this run of the process among all replicas.
	Replica  string
	Now      func() span.Instant
	Registry *prometheus.Registry
}

// Promises tells of changes of reservations; *booking.Service implements it.
type Promises interface {
	// Listen calls the listener for every change from now on.
	Listen(l booking.Listener)
	// FollowedUntil returns an instant before which everything that was stored has been told.
	FollowedUntil() span.Instant
}

// API serves the stream of events.
type API struct {
	Options

	log     *eventLog
	streams *streams
	news    hostNews
	slow    prometheus.Counter // streams whose clients read too slowly
}

// New returns the stream of events from now on.
func New(o Options) *API {
	with := promauto.With(o.Registry)
	s := &API{
		Options: o, streams: newStreams(o.Limits),
		// No event tells of changes before the service listens, so the events count from the next second on.
		log: newEventLog(processID(o.Replica), o.Now().Add(1)),
		slow: with.NewCounter(prometheus.CounterOpts{
			Name: "almanac_event_streams_dropped_total", Help: "Event streams that ended because their client read too slowly or had gone.",
		}),
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "almanac_event_streams", Help: "Open event streams.",
	}, func() float64 { return float64(s.streams.count()) })
	s.news.told = o.Snapshot()
	o.Promises.Listen(s.learn)
	return s
}

// learn adds a change of a reservation to the events. It implements booking.Listener.
func (s *API) learn(news booking.Learned) { s.log.add(eventOf(news), s.Now()) }

// End ends all streams and refuses new ones.
func (s *API) End() { s.streams.end() }

// Routes returns the call for the stream.
func (s *API) Routes() []serving.Route {
	return []serving.Route{
		serving.Get("/v1/events", serving.Rule("events:get"), serving.Streaming, serving.OneThing, serving.ByNobody, s.follow),
	}
}
