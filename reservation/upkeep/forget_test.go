// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// guestRecords maps instances to the time of their request.
type guestRecords map[string]span.Instant

func (g guestRecords) OldInstanceRecords(_ context.Context, before span.Instant) (old []string, _ error) {
	for id, at := range g {
		if at < before {
			old = append(old, id)
		}
	}
	slices.Sort(old)
	return old, nil
}

func (g guestRecords) ForgetInstanceRecords(_ context.Context, lease job.Lease, instances []string, _ span.Instant) error {
	if lease.Epoch != 7 {
		return errors.New("the lease is another's")
	}
	for _, id := range instances {
		delete(g, id)
	}
	return nil
}

func TestWhoWasPlacedByAHintIsForgottenADayLaterWhenGone(t *testing.T) {
	all := []string{"gone", "nowhere", "running", "young"}
	for name, tc := range map[string]struct {
		untrusted string
		away      error
		want      []string
	}{
		"all is well":                  {"", nil, all[1:]},
		"the inventory is untrusted":   {"no host has a guest", nil, all},
		"Nova does not answer":         {"", errors.New("503"), all},
		"in doubt, and Nova is silent": {"no host has a guest", errors.New("503"), all},
	} {
		t.Run(name, func(t *testing.T) {
			records, cloud := guestRecords{"gone": 0, "nowhere": 0, "running": 0, "young": 50_000}, newModelCloud("a")
			cloud.put(inventory.Instance{ID: "running", Host: "a"})
			o := upkeep.ForgettingOptions{
				Records: records, Leases: &shared{}, Snapshot: cloud.inventory, Untrusted: func() string { return tc.untrusted },
				Exists: func(_ context.Context, id string) (bool, error) {
					if id == "running" {
						t.Error("Nova gets a call for an instance whose host is known")
					}
					return id == "nowhere", tc.away // as for a shelved instance
				},
				Now: func() span.Instant { return 100_000 },
			}
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				upkeep.Forgetting(o).Run(ctx, slog.New(slog.DiscardHandler))
			})
			left, _ := records.OldInstanceRecords(t.Context(), span.Forever)
			if d := cmp.Diff(tc.want, left); d != "" {
				t.Errorf("remembered instances (-want +got):\n%s", d)
			}
		})
	}
}
