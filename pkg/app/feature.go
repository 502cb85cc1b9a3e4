// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
)

// feature is what one part of the service adds to the process. Functions open… return it together
// with what other features need; its closers count after an error too.
type feature struct {
	jobs     []job.Job
	services []service
	probes   []api.Probe
	metrics  metrics
	closers  []func() error // called last to first
}

// service is a task that runs until its context ends.
type service struct {
	name string
	run  func(ctx context.Context) error
}

// close releases what the feature acquired.
func (f *feature) close() error {
	var errs []error
	for _, closer := range slices.Backward(f.closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

// probe adds a check whose result is the error.
func (f *feature) probe(name string, check func() error) {
	f.probes = append(f.probes, api.Probe{Name: name, Check: func(context.Context) error { return check() }})
}

// openTransport returns a transport to the message broker at url, which connects later, in the
// background.
func (f *feature) openTransport(p process, name, url string) (*amqp.Transport, oslo.URL, error) {
	at, err := oslo.ParseURL(url)
	if err != nil {
		return nil, at, err
	}
	o := p.config.Rabbit.Options
	o.Name, o.NewID, o.Now, o.Log = "almanac "+name+" "+p.replica, uuid.NewString, time.Now, p.logOf("messaging")
	transport, err := amqp.Open(at, o)
	if err != nil {
		return nil, at, err
	}
	f.closers = append(f.closers, transport.Close)
	f.probe(name+" broker", func() error { return connected(transport.Status()) })
	f.metrics.transport(name, transport)
	return transport, at, nil
}

// openPeer returns a transport to the message broker of other services at url, and the options of
// their queues, which must be the same here. option names the URL in errors.
func (f *feature) openPeer(p process, name, option, url string) (*amqp.Transport, oslo.QueueOptions, error) {
	transport, at, err := f.openTransport(p, name, url)
	if err != nil {
		return nil, oslo.QueueOptions{}, fmt.Errorf("%s: %w", option, err)
	}
	queues, err := at.Queues(p.config.Rabbit.Queues)
	if err != nil {
		return nil, queues, fmt.Errorf("%s: %w", option, err)
	}
	return transport, queues, nil
}

// newClient returns a client of topics.
func (f *feature) newClient(transport oslo.Transport, o oslo.ClientOptions) *oslo.Client {
	o.NewID, o.Now = uuid.NewString, time.Now
	client := oslo.NewClient(transport, o)
	f.closers = append(f.closers, func() error {
		client.Close()
		return nil
	})
	return client
}

// metrics are metrics whose values are read at each scrape.
type metrics []prometheus.Collector

func (m *metrics) gauge(name, help string, labels prometheus.Labels, value func() float64) {
	*m = append(*m, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
}

func (m *metrics) counter(name, help string, labels prometheus.Labels, value func() float64) {
	*m = append(*m, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, value))
}

func (m *metrics) transport(name string, t *amqp.Transport) {
	labels := prometheus.Labels{"transport": name}
	m.gauge("almanac_messaging_connected", "1 if the message broker is connected.", labels,
		func() float64 { return oneIf(t.Status().Connected) })
	m.counter("almanac_messaging_reconnects_total", "Reconnections to the message broker.", labels,
		func() float64 { return float64(t.Status().Reconnects) })
	m.counter("almanac_messaging_unconfirmed_total", "Messages that the message broker did not confirm.", labels,
		func() float64 { return float64(t.Status().Unconfirmed) })
}

func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// signal wakes its readers. Each of them misses no wake-up, and may see several as one.
type signal []chan struct{}

func newSignal(readers int) signal {
	s := make(signal, readers)
	for i := range s {
		s[i] = make(chan struct{}, 1)
	}
	return s
}

func (s signal) poke() {
	for _, reader := range s {
		job.Poke(reader)
	}
}

// relay returns a service that calls wake for each value of changed.
func relay(name string, changed <-chan struct{}, wake func()) service {
	return service{name, func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
				wake()
			}
		}
	}}
}
