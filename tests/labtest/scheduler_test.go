// SPDX-License-Identifier: Apache-2.0

package labtest_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

func TestASchedulerBehindPlacesWhatIsAskedOnItsOwnVirtualHost(t *testing.T) {
	cloud := labtest.OpenStack(t)
	behind := labtest.SchedulerBehind(t, "filter_scheduler.host_subset_size=3", "scheduler.max_attempts=2")
	conductor := labtest.NewConductor(t, behind)
	ids := []string{oslotest.NewID(), oslotest.NewID()}
	chosen, err := conductor.SelectDestinations(t.Context(), labtest.RequestSpec{}, ids, true, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(chosen) != 2 || len(chosen[0]) != 2 {
		t.Fatalf("selections %+v, want for each of two instances a host and one alternate", chosen)
	}
	var want []string
	for i, list := range chosen {
		if !slices.Contains(cloud.Hosts(t), list[0].Host) || list[0].Cell == "" || list[0].AllocationRequest == "" {
			t.Errorf("selection %+v", list[0])
		}
		want = append(want, ids[i]+" on "+list[0].Host)
	}
	stray := cloud.Stray(t)
	for _, claim := range want {
		if !slices.Contains(stray, claim) {
			t.Errorf("stray allocations %v, want %s, which belongs to no server", stray, claim)
		}
	}
	release(t, cloud, ids...)
	if stray := cloud.Stray(t); len(stray) > 0 {
		t.Errorf("stray allocations are left: %v", stray)
	}

	_, err = conductor.SelectDestinations(t.Context(), labtest.RequestSpec{VCPUs: 1000}, ids[:1], true, true)
	if remote, ok := errors.AsType[*oslo.RemoteError](err); !ok || remote.Class != "NoValidHost" {
		t.Errorf("an instance that is too large: %v, want NoValidHost", err)
	}
	names := func(transportURL string) (list []string) {
		for _, queue := range labtest.Queues(t, transportURL) {
			list = append(list, queue.Name)
		}
		return list
	}
	if list := names(behind); !slices.Contains(list, "scheduler.behind") || slices.Contains(list, "conductor") {
		t.Errorf("queues of the virtual host: %v", list)
	}
	if list := names(labtest.NovaTransport(t)); !slices.Contains(list, "conductor") || slices.Contains(list, "scheduler.behind") {
		t.Errorf("queues of Nova: %v", list)
	}
}

// release deletes the allocations of consumers.
func release(t *testing.T, cloud labtest.LabCloud, consumers ...string) {
	t.Helper()
	admin := cloud.REST(t, labtest.Admin)
	for _, consumer := range consumers {
		if status := admin.Do(http.MethodDelete, "placement", "/allocations/"+consumer, nil, nil); status != http.StatusNoContent && status != http.StatusNotFound {
			t.Errorf("delete the allocations of %s: status %d", consumer, status)
		}
	}
}

func TestTheTopicIsFreeWhileTheSchedulerIsAway(t *testing.T) {
	cloud := labtest.OpenStack(t)
	conductor := labtest.NewConductor(t, labtest.NovaTransport(t))
	ask := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		id := oslotest.NewID()
		_, err := conductor.SelectDestinations(ctx, labtest.RequestSpec{}, []string{id}, false, false)
		release(t, cloud, id)
		return err
	}
	t.Run("during", func(t *testing.T) {
		labtest.TakeSchedulerAway(t)
		t.Run("the end of a test that stops something else", func(t *testing.T) { labtest.StopService(t, "placement") })
		if err := ask(2 * time.Second); err == nil || !strings.Contains(err.Error(), "topic scheduler") {
			t.Errorf("a call while nobody serves the topic: %v", err)
		}
	})
	if err := ask(5 * time.Minute); err != nil {
		t.Errorf("a call after the test: %v", err)
	}
	if stray := cloud.Stray(t); len(stray) > 0 {
		t.Errorf("the scheduler served a call whose caller had given up: %v", stray)
	}
}
