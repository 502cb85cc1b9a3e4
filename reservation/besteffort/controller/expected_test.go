// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/requests"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// planner counts how often it plans.
type planner struct{ plans *int }

func (p planner) Plan(s besteffort.Situation) besteffort.Plan {
	*p.plans++
	return suspending.Plan(s)
}

func TestWhoLooksAtTheQueueDoesNotHaveItPlannedEachTime(t *testing.T) {
	m, plans := newModel(2, "a"), 0
	m.submit(1, 60, 2, false)
	second := m.submit(1, 60, 2, false)
	api := &requests.API{
		Store: storeOf{nil, m}, Planner: planner{&plans}, Now: func() span.Instant { return m.now }, View: m.view,
	}
	for range 10 {
		expected, err := api.Expected(t.Context())
		if err != nil || expected[m.vm(second, 0).ID].Start <= m.now {
			t.Fatalf("Expected returns %v, %v", expected, err)
		}
	}
	if plans != 1 {
		t.Errorf("ten reads at one instant made %d plans, want 1", plans)
	}
	m.now += 10
	if _, err := api.Expected(t.Context()); err != nil || plans != 2 {
		t.Errorf("with a later read there are %d plans, %v; want 2", plans, err)
	}

	c := m.starts(suspending)
	api.Planned = c.Expected
	runs(t, m, c, 1)
	m.now += 3
	expected, err := api.Expected(t.Context())
	if err != nil || plans != 2 || expected[m.vm(second, 0).ID].Start <= m.now {
		t.Errorf("together with the controller there are %d plans, want 2: %v, %v", plans, expected, err)
	}
}

// storeOf is a RequestStore over the model's requests.
type storeOf struct {
	requests.RequestStore
	*model
}

func (s storeOf) OpenBestEffort(ctx context.Context) ([]state.Request, error) {
	return s.model.OpenBestEffort(ctx)
}
