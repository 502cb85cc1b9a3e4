// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

func TestTheInventoryAloneTellsHowItIs(t *testing.T) {
	folder := built.NewFolder(t, built.TenHosts)
	s := built.Start(t, folder, "OS_DEFAULT__ROLES=inventory", "OS_DEFAULT__TRANSPORT_URL="+labtest.RabbitMQ(t), "OS_INVENTORY__REFRESH_INTERVAL=1")
	var versions struct {
		Name     string
		Versions []any
	}
	if err := json.Unmarshal([]byte(built.Get(t, s.URL+"/", "")), &versions); err != nil || versions.Name != "almanac" || versions.Versions == nil || len(versions.Versions) > 0 {
		t.Errorf("the root returns %+v (%v), want almanac without a version of the API", versions, err)
	}
	tells := func(health string, failing int) {
		t.Helper()
		built.Eventually(t, "the health check does not return "+health, func() bool { return built.Get(t, s.URL+"/healthcheck", "") == health+"\n" })
		want := fmt.Sprintf("almanac_job_failing{name=\"inventory service\"} %d\n", failing)
		built.Eventually(t, "the metrics, which are at most a second old, do not have "+want, func() bool {
			metrics := built.Get(t, s.URL+"/metrics", "")
			return strings.Contains(metrics, want) && strings.Contains(metrics, "almanac_messaging_connected")
		})
	}
	tells("OK", 0)
	hosts := filepath.Join(folder, "hosts.yaml")
	if err := os.WriteFile(hosts, []byte("hosts: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tells("could not read the hosts, or announce them to the other processes", 1)
	if err := os.WriteFile(hosts, []byte(built.TenHosts), 0o600); err != nil {
		t.Fatal(err)
	}
	tells("OK", 0)
	s.Stop(t)
}

// queue is a queue of the broker.
type queue struct {
	Name      string
	Arguments map[string]any
}

// queues reads the broker's management API, on the port after AMQP's.
func queues(t *testing.T, broker *url.URL) []queue {
	t.Helper()
	port, err := strconv.Atoi(broker.Port())
	if err != nil {
		t.Fatal(err)
	}
	at := url.URL{Scheme: "http", User: broker.User, Host: fmt.Sprintf("%s:%d", broker.Hostname(), port+1), Path: "/api/queues" + broker.Path}
	answer, err := http.Get(at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var list []queue
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return list
}

var fanoutQueue = regexp.MustCompile(`^(.*)_fanout_`)

// Both roles start separately ten times, and end regularly or by a kill.
func TestRestartsLeaveNoQueues(t *testing.T) {
	broker := labtest.RabbitMQ(t)
	at, err := url.Parse(broker)
	if err != nil {
		t.Fatal(err)
	}
	settings := func(role string) []string {
		return []string{"OS_DEFAULT__HOST=machine", "OS_DEFAULT__ROLES=" + role, "OS_DEFAULT__TRANSPORT_URL=" + broker}
	}
	seen := map[string]bool{}
	// The queues of a topic exist when the last of them, its fanout queue, exists.
	served := func(topics ...string) {
		t.Helper()
		built.Eventually(t, fmt.Sprintf("%v are not served", topics), func() bool {
			var fresh []string
			for _, q := range queues(t, at) {
				if m := fanoutQueue.FindStringSubmatch(q.Name); m != nil && !seen[q.Name] {
					fresh = append(fresh, m[1])
				}
			}
			slices.Sort(fresh)
			return slices.Equal(fresh, topics)
		})
		for _, q := range queues(t, at) {
			seen[q.Name] = true
		}
	}
	inventory, api := built.NewFolder(t, built.TenHosts), built.NewFolder(t, built.TenHosts)
	for round := range 10 {
		first := built.Start(t, inventory, settings("inventory")...)
		served("almanac.inventory")
		second := built.Start(t, api, settings("api")...)
		served("almanac.changes", "almanac.inventory.changes")
		if round%2 == 0 {
			second.Stop(t)
			first.Stop(t)
		} else {
			second.Kill()
			first.Kill()
		}
	}
	var lasting []string
	for _, q := range queues(t, at) {
		if q.Arguments["x-expires"] == nil {
			lasting = append(lasting, q.Name)
		}
	}
	want := []string{
		"almanac.changes", "almanac.changes.machine", "almanac.inventory", "almanac.inventory.changes",
		"almanac.inventory.changes.machine", "almanac.inventory.machine",
	}
	if diff := cmp.Diff(want, lasting); diff != "" {
		t.Errorf("remaining queues (-want +got):\n%s", diff)
	}
}
