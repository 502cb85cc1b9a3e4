// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// Blazar books all of the eight, and leaves what it had made in Nova for those that it refuses.
func TestNovaAndPlacementLearnOfOneOfEightLeasesAtOnceForAHost(t *testing.T) {
	b := besideOpenStack(t)
	host := b.cloud.Hosts(t)[0]
	b.pool(host)
	for what, reservation := range map[string]map[string]any{
		"the host": {
			"resource_type": "physical:host", "min": 1, "max": 1,
			"hypervisor_properties": fmt.Sprintf(`["==", "$hypervisor_hostname", %q]`, host), "resource_properties": ""},
		"instances that need more than half of it": {
			"resource_type": "virtual:instance", "amount": 1, "vcpus": 1, "memory_mb": 512, "disk_gb": diskOfHost/2 + 1,
			"affinity": true, "resource_properties": fmt.Sprintf(`["==", "$hypervisor_hostname", %q]`, host)},
	} {
		t.Run(what, func(t *testing.T) { b.with(t).bookedOnce(reservation) })
	}
}

// bookedOnce sends eight leases at once and compares what is in Nova and Placement with the lease
// that is booked, while it is active and after its end.
func (b *beside) bookedOnce(reservation map[string]any) {
	b.t.Helper()
	body, _ := json.Marshal(map[string]any{ // texts and numbers always marshal
		"name": "one of eight", "start_date": "now", "end_date": minuteOf(time.Now().Add(time.Hour)), "reservations": []any{reservation}})
	var answers [8]leaseAnswer
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = b.calledForLeases(http.MethodPost, "", body) })
	}
	all.Wait()
	var booked []leaseAnswer
	for _, one := range answers {
		switch {
		case one.status == http.StatusCreated:
			booked = append(booked, one)
		case one.status != http.StatusBadRequest || !strings.Contains(one.text, "Not enough hosts available"):
			b.t.Errorf("a lease is refused with %d %s", one.status, one.text)
		}
	}
	if len(booked) != 1 || len(booked[0].Lease.Reservations) != 1 {
		b.t.Fatalf("%d of eight leases are booked, want one with one reservation: %v", len(booked), answers)
	}
	id := booked[0].Lease.Reservations[0].ID
	b.becomes(id, "active")
	if left := b.othersInTheCloud(id); len(left) > 0 {
		b.t.Errorf("beside the lease that is booked, the cloud has %v", left)
	}
	if gone := b.calledForLeases(http.MethodDelete, "/"+booked[0].Lease.ID, nil); gone.status != http.StatusNoContent {
		b.t.Fatalf("the deletion of the lease: %d %s", gone.status, gone.text)
	}
	b.traceless(id)
	b.await("nothing of eight leases is in the cloud", func() bool { return len(b.othersInTheCloud("")) == 0 })
}

type leaseAnswer struct {
	status int
	text   string
	Lease  struct {
		ID           string
		Reservations []struct{ ID string }
	}
}

// calledForLeases returns the answer to a call of Blazar's API by a member.
func (b *beside) calledForLeases(method, path string, body []byte) (a leaseAnswer) {
	b.t.Helper()
	request, err := http.NewRequest(method, b.URL+"/v1/leases"+path, bytes.NewReader(body))
	if err != nil {
		b.t.Error(err)
		return a
	}
	request.Header.Set("X-Auth-Token", b.cloud.Token(b.t, labtest.Demo))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Error(err)
		return a
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Error(err)
	}
	a.status, a.text = answer.StatusCode, string(text)
	if a.status == http.StatusCreated {
		if err := json.Unmarshal(text, &a); err != nil {
			b.t.Errorf("%v: %s", err, text)
		}
	}
	return a
}

// othersInTheCloud returns the flavors, aggregates, server groups, traits and resource classes that
// belong to reservations other than this one.
func (b *beside) othersInTheCloud(id string) (found []string) {
	b.t.Helper()
	var flavors struct{ Flavors []struct{ Name string } }
	b.admin.Must(http.MethodGet, "compute", "/flavors?is_public=None", nil, &flavors)
	for _, one := range flavors.Flavors {
		found = append(found, one.Name)
	}
	for name := range b.aggregates() {
		found = append(found, name)
	}
	var groups struct {
		Groups []struct{ Name string } `json:"server_groups"`
	}
	b.admin.Must(http.MethodGet, "compute", "/os-server-groups?all_projects=True", nil, &groups)
	for _, one := range groups.Groups {
		found = append(found, one.Name)
	}
	var traits struct{ Traits []string }
	b.admin.Must(http.MethodGet, "placement", "/traits?name=startswith:"+ownName(""), nil, &traits)
	var classes struct {
		Classes []struct{ Name string } `json:"resource_classes"`
	}
	b.admin.Must(http.MethodGet, "placement", "/resource_classes", nil, &classes)
	found = append(found, traits.Traits...)
	for _, one := range classes.Classes {
		found = append(found, one.Name)
	}
	return slices.DeleteFunc(found, func(name string) bool {
		ours := strings.HasPrefix(name, "reservation:") || strings.HasPrefix(name, "almanac-reservation-") || strings.HasPrefix(name, ownName(""))
		return !ours || id != "" && (strings.HasSuffix(name, id) || name == ownName(id))
	})
}
