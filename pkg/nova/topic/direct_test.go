// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// direct returns a service without a broker.
func direct(t *testing.T, p placer, kept *kept) *topic.Service {
	t.Helper()
	states := cloud(t)
	return &topic.Service{Options: topic.Options{
		Placer: p, States: func() *inventory.States { return states }, Decisions: kept,
		Promises: filters.Reservation{Promises: promised, Fence: filters.FenceAlways, Class: fence.OwnName},
		Now:      func() span.Instant { return now }, Elapsed: func() time.Duration { return 0 }, Log: slog.New(slog.DiscardHandler),
	}}
}

func TestACallerInTheProcessIsAdmittedLikeNova(t *testing.T) {
	ask := func(p placer, hint string) (host string, stored *kept, err error) {
		stored = &kept{}
		r := placing.Request{ID: "req-1", ProjectID: "p", Instances: []string{"i1"}, Resources: map[string]int64{"VCPU": 1}, Hints: map[string][]string{}}
		if hint != "" {
			r.Hints[placing.ReservationHint] = []string{hint}
		}
		placed, err := direct(t, p, stored).Place(t.Context(), r)
		if err == nil {
			host = placed.Selections[0][0].Host.Name
		}
		return host, stored, err
	}
	if host, _, err := ask(placer{}, ""); err != nil || host != "cmp-007" {
		t.Errorf("without a hint: %q, %v", host, err)
	}
	_, stored, err := ask(placer{}, "foreign")
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "The project has no reservation foreign, or it is over.") {
		t.Errorf("with the hint of a foreign reservation: %v", err)
	}
	if len(stored.list) != 1 || stored.list[0].Reason == "" {
		t.Errorf("the stored decisions are %+v", stored.list)
	}
	_, _, err = ask(placer{err: fault.New(fault.Conflict, "there is no room")}, "")
	if !fault.Is(err, fault.Conflict) || fault.Of(err).Message != "There is no room." {
		t.Errorf("without room: %v", err)
	}
}
