// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestAnswersToNovaAreMeasuredByWhatCameOfThem(t *testing.T) {
	a, registry := newAnswers(), prometheus.NewRegistry()
	registry.MustRegister(a.took)
	a.given(2*time.Second, true)
	a.given(500*time.Millisecond, true)
	a.given(time.Minute, false)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("got %v, %v", families, err)
	}
	type measured struct {
		count uint64
		sum   float64
	}
	got := map[string]measured{}
	for _, m := range families[0].GetMetric() {
		got[m.GetLabel()[0].GetValue()] = measured{m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()}
	}
	if len(got) != 2 || got["placed"] != (measured{2, 2.5}) || got["no_host"] != (measured{1, 60}) {
		t.Errorf("got %v", got)
	}
}
