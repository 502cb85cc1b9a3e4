// SPDX-License-Identifier: Apache-2.0

package amqp_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

// open returns a transport to url with short retry intervals.
func open(t *testing.T, url string) *amqp.Transport {
	t.Helper()
	u, err := oslo.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := amqp.Open(u, amqp.Options{
		Name: t.Name(), RetryInterval: 100 * time.Millisecond, RetryBackoff: 100 * time.Millisecond, IntervalMax: time.Second,
		NewID: oslotest.NewID, Now: time.Now, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

func TestRabbitMQ(t *testing.T) {
	oslotest.Run(t, func(t *testing.T) oslotest.Transport { return open(t, labtest.RabbitMQ(t)) })
}
