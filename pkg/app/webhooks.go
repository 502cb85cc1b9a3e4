// SPDX-License-Identifier: Apache-2.0

package app

import (
	cryptorand "crypto/rand"
	"fmt"
	"math/rand/v2"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/pkg/api/webhooks"
	"github.com/almanac-cloud/almanac/reservation/webhook"
	"github.com/almanac-cloud/almanac/reservation/webhook/delivery"
)

// openWebhooks opens what tells webhooks of changes, and returns what the API needs. Without allowed receivers nothing is sent.
func openWebhooks(s shared) (api webhooks.API, f feature, err error) {
	o := s.config.Webhooks
	allowed, err := webhook.ParseAllowed(o.Allowed)
	if err != nil {
		return api, f, fmt.Errorf("[webhooks] %w", err)
	}
	tried := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "almanac_webhook_deliveries_total", Help: "Deliveries to webhooks, by outcome; failed counts tries.",
	}, []string{"outcome"})
	for _, outcome := range delivery.Outcomes {
		tried.WithLabelValues(outcome)
	}
	f.metrics = append(f.metrics, tried)
	poster := delivery.NewPoster(allowed, s.version, s.clock.now)
	api = webhooks.API{Store: s.db, Check: poster.Check, MostPerProject: o.MostPerProject, NewSecret: newSecret}
	if allowed.None() {
		return api, f, nil
	}
	f.jobs = delivery.Deliveries{Options: delivery.Options{
		Store: s.db, Leases: s.leases(), Post: poster.Post, Source: o.Source, GiveUpAfter: o.GiveUpAfter,
		Chance: rand.Float64, Now: s.clock.now, Log: s.logOf("webhooks"),
		Count: func(outcome string, n int) { tried.WithLabelValues(outcome).Add(float64(n)) },
	}}.Jobs()
	return api, f, nil
}

// newSecret draws the secret of a webhook.
func newSecret() webhook.Secret {
	key := make([]byte, webhook.SecretBytes)
	_, _ = cryptorand.Read(key) // it never fails
	return webhook.NewSecret(key)
}
