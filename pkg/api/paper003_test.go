// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// figure1 is Figure 1 of paper 003 as a cloud: twelve equal hosts, three
// reservations, times in minutes from noon.
func figure1(t *testing.T) *cloud {
	var hosts []inventory.Host
	for _, name := range machines(0, 11) {
		hosts = append(hosts, machine(name))
	}
	c := start(t, setup{hosts: hosts})
	for _, job := range []struct{ from, to, first, last int }{{0, 30, 0, 3}, {0, 10, 4, 6}, {100, 130, 2, 7}} {
		names := `"` + strings.Join(machines(job.first, job.last), `", "`) + `"`
		c.admin.book(fmt.Sprintf(`{"name": "r", "start_time": %q, "end_time": %q, "quantity": %d, "host_properties": ["in", "$name", %s]}`,
			at(int64(job.from)*60), at(int64(job.to)*60), job.last-job.first+1, names))
	}
	return c
}

func machines(first, last int) []string {
	var names []string
	for i := first; i <= last; i++ {
		names = append(names, fmt.Sprintf("pe-%02d", i))
	}
	return names
}

func ask(policy calendar.Policy, quantity int, deadline int64) string {
	return fmt.Sprintf(`{"name": "r", "start_time": %q, "end_time": %q, "duration": "25m", "quantity": %d, "policy": %q}`,
		at(20*60), at(deadline*60), quantity, policy)
}

func TestA003_3_EachPolicyChoosesOverREST(t *testing.T) {
	c := figure1(t)
	idle := append(machines(0, 1), machines(8, 9)...)
	for policy, want := range map[calendar.Policy]struct {
		minute span.Instant
		hosts  []string
	}{
		calendar.PolicyFirstFit:           {20, machines(4, 7)},
		calendar.PolicyPEBestFit:          {85, idle},
		calendar.PolicyPEWorstFit:         {30, machines(0, 3)},
		calendar.PolicyDurationBestFit:    {30, machines(0, 3)},
		calendar.PolicyDurationWorstFit:   {85, idle},
		calendar.PolicyPEDurationBestFit:  {85, idle},
		calendar.PolicyPEDurationWorstFit: {30, machines(0, 3)},
	} {
		offer := offered(t, c, ask(policy, 4, 110))
		if got, want := offer.Start, (noon + want.minute*60).Time(); !got.Equal(want) {
			t.Errorf("%s: start %v, want %v", policy, got, want)
		}
		if diff := cmp.Diff(want.hosts, offer.Hosts); diff != "" {
			t.Errorf("%s: hosts (-want +got):\n%s", policy, diff)
		}
	}
}

func offered(t *testing.T, c *cloud, body string) v1.Offer {
	t.Helper()
	return want[v1.OfferAnswer](t, c.admin.post("/v1/reservations?dry_run=true", body), http.StatusOK).Offer
}

func TestA003_5_NineAndThirteenHostsOverREST(t *testing.T) {
	c := figure1(t)
	for _, policy := range calendar.Policies {
		if got, want := offered(t, c, ask(policy, 9, 110)).Start, (noon + 30*60).Time(); !got.Equal(want) {
			t.Errorf("%s: 9 hosts at %v, want %v", policy, got, want)
		}
		refusal := want[v1.ErrorAnswer](t, c.admin.post("/v1/reservations?dry_run=true", ask(policy, 13, 110)), http.StatusConflict).Refusal
		if refusal == nil || refusal.Constraint != "pool" || refusal.LargestQuantity != 12 || refusal.EarliestStart != nil {
			t.Errorf("%s: 13 of 12 hosts: %+v", policy, refusal)
		}
	}
}

func TestA003_8_AnImmediateDeadlineOverREST(t *testing.T) {
	c := figure1(t)
	for _, policy := range calendar.Policies {
		offer := offered(t, c, ask(policy, 4, 45))
		if want := (noon + 20*60).Time(); !offer.Start.Equal(want) || !slices.Equal(offer.Hosts, machines(4, 7)) {
			t.Errorf("%s: %v on %v, want %v on %v", policy, offer.Start, offer.Hosts, want, machines(4, 7))
		}
	}
}
