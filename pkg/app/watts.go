// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	promapi "github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

const (
	// wattsTimeout bounds all queries of one measurement together.
	wattsTimeout = 10 * time.Second
	wattsAtOnce  = 8
)

// wattmeter queries a Prometheus for the power of hosts.
type wattmeter struct {
	api   promv1.API
	query string // with {host} for the host's name
	now   func() time.Time
}

// newWattmeter returns the wattmeter of [energy] prometheus_url; nil without a URL.
func newWattmeter(c config.Energy) (*wattmeter, error) {
	if c.WattsURL == "" {
		return nil, nil
	}
	if !strings.Contains(c.WattsQuery, "{host}") {
		return nil, fault.Field("[energy] watts_query", "must contain {host} in place of the name of the host, as in node_power_watts{instance=~\"{host}(:.*)?\"}")
	}
	client, err := promapi.NewClient(promapi.Config{Address: c.WattsURL})
	if err != nil {
		return nil, fault.Field("[energy] prometheus_url", "%v", err)
	}
	return &wattmeter{promv1.NewAPI(client), c.WattsQuery, time.Now}, nil
}

// read returns the power of hosts in watts, for controller.Options.Watts.
func (w *wattmeter) read(ctx context.Context, hosts []string) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, wattsTimeout)
	defer cancel()
	var mu sync.Mutex
	watts := map[string]float64{}
	var asking errgroup.Group
	asking.SetLimit(wattsAtOnce)
	for _, host := range hosts {
		asking.Go(func() error {
			n, err := w.of(ctx, host)
			if err != nil {
				return fmt.Errorf("read the power of host %s from Prometheus: %w", host, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if n > 0 {
				watts[host] = n
			}
			return nil
		})
	}
	return watts, asking.Wait()
}

// of returns the sum of the query's results for a host; 0 without results.
func (w *wattmeter) of(ctx context.Context, host string) (sum float64, err error) {
	answer, _, _, err := w.api.Query(ctx, strings.ReplaceAll(w.query, "{host}", host), w.now())
	if err != nil {
		return 0, err
	}
	switch v := answer.(type) {
	case model.Vector:
		for _, sample := range v {
			sum += float64(sample.Value)
		}
	case *model.Scalar:
		sum = float64(v.Value)
	default:
		return 0, fault.New(fault.Invalid, "the query returns a %s instead of an instant vector", answer.Type())
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return 0, nil
	}
	return sum, nil
}
