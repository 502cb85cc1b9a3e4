// SPDX-License-Identifier: Apache-2.0

package amqp

import (
	"errors"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// Transport is an oslo.Transport over RabbitMQ.
type Transport struct {
	health    *health
	publisher *publisher
	consume   *link
}

// Open returns a transport to the brokers of u. It connects in the background and reconnects until
// Close. Errors are Invalid and concern an option.
func Open(u oslo.URL, o Options) (*Transport, error) {
	if u.Scheme != "rabbit" {
		return nil, fault.Field("transport_url", "has the scheme %q; RabbitMQ's is rabbit://", u.Scheme)
	}
	o, err := o.override(u.Query)
	if err != nil {
		return nil, err
	}
	settings, err := o.TLS.config()
	if err != nil {
		return nil, err
	}
	if len(u.Hosts) == 0 {
		u.Hosts = []oslo.Host{{Name: "localhost", Port: 5672, User: "guest", Password: "guest"}}
	}
	o = o.withDefaults()
	h := newHealth(u, o)
	return &Transport{
		health:    h,
		publisher: newPublisher(newLink("publish", u, o, settings, h)),
		consume:   newLink("consume", u, o, settings, h),
	}, nil
}

// Close ends the subscriptions and both connections. Messages in progress end unconfirmed.
func (t *Transport) Close() error {
	return errors.Join(t.consume.close(), t.publisher.close())
}
