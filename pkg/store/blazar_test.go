// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation/takeover"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// minute returns an instant on a day of July 2026.
func minute(day, hour int) span.Instant {
	return span.At(time.Date(2026, time.July, day, hour, 0, 0, 0, time.UTC))
}

func readBlazar(t *testing.T, url, also string) (takeover.Database, error) {
	t.Helper()
	b, err := store.OpenBlazar(t.Context(), store.Options{Connection: url, NewToken: rand.Text})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	return b.Read(t.Context(), also)
}

func TestBlazarsRowsAreReadWithoutZonesAndNulls(t *testing.T) {
	url := labtest.BlazarTables(t)
	labtest.Execute(t, url,
		`INSERT INTO computehosts (id, created_at, vcpus, cpu_info, hypervisor_type, hypervisor_version, hypervisor_hostname, service_name, memory_mb, local_gb, availability_zone, trust_id, reservable)
			VALUES ('7', '2026-07-02 03:00:05', 4, '', 'fake', 1, 'node-7', 'cmp-7', 8000, 100, '', 't', 1), ('8', NULL, 2, '', 'fake', 1, NULL, NULL, 4000, 50, '', 't', 0)`,
		`INSERT INTO resource_properties (id, resource_type, property_name, private) VALUES ('p1', 'physical:host', 'gpu', 0), ('p2', 'physical:host', 'rack', 1)`,
		`INSERT INTO computehost_extra_capabilities (id, computehost_id, property_id, capability_value) VALUES ('c1', '7', 'p1', 'True'), ('c2', '7', 'p2', '12')`,
		`INSERT INTO leases (id, created_at, updated_at, name, user_id, project_id, start_date, end_date, trust_id, status, degraded)
			VALUES ('l1', '2026-07-01 00:00:00', NULL, 'one', 'u', 'p', '2026-07-01 10:00:00', '2026-07-02 10:00:00', 't', 'PENDING', 0)`,
		`INSERT INTO events (id, lease_id, event_type, time, status) VALUES ('e1', 'l1', 'start_lease', '2026-07-01 10:00:00', 'UNDONE'), ('e2', 'l1', 'end_lease', '2026-07-02 10:00:00', 'UNDONE')`,
		`INSERT INTO reservations (id, lease_id, resource_id, resource_type, status, missing_resources, resources_changed)
			VALUES ('r1', 'l1', 'x', 'physical:host', 'pending', 0, 0), ('r2', 'l1', 'y', 'virtual:instance', 'pending', 0, 0), ('r3', 'l1', 'z', 'virtual:floatingip', 'pending', 0, 0)`,
		`INSERT INTO computehost_reservations (id, reservation_id, aggregate_id, resource_properties, count_range, hypervisor_properties, before_end)
			VALUES ('x', 'r1', 12, '["==", "$gpu", "True"]', '1-2', NULL, 'snapshot')`,
		`INSERT INTO instance_reservations (id, reservation_id, vcpus, memory_mb, disk_gb, amount, affinity, resource_properties, flavor_id, aggregate_id, server_group_id)
			VALUES ('y', 'r2', 1, 512, 0, 2, 0, '', 'r2', 13, 'g')`,
		`INSERT INTO computehost_allocations (id, compute_host_id, reservation_id) VALUES ('a1', '7', 'r1'), ('a2', '8', 'r2')`,
		`INSERT INTO floatingips (id, floating_network_id, subnet_id, floating_ip_address, reservable) VALUES ('f', 'n', 's', '192.0.2.7', 1)`,
	)
	got, err := readBlazar(t, url, "")
	if err != nil {
		t.Fatal(err)
	}
	want := takeover.Database{
		Leases: []takeover.Lease{{
			ID: "l1", Name: "one", UserID: "u", ProjectID: "p", Status: "PENDING",
			Start: minute(1, 10), End: minute(2, 10), Created: minute(1, 0),
		}},
		Events: []takeover.Event{
			{LeaseID: "l1", Type: "start_lease", Time: minute(1, 10), Status: "UNDONE"},
			{LeaseID: "l1", Type: "end_lease", Time: minute(2, 10), Status: "UNDONE"},
		},
		Reservations: []takeover.Reservation{
			{ID: "r1", LeaseID: "l1", Type: "physical:host", Status: "pending", Hosts: &takeover.HostTerms{
				CountRange: "1-2", ResourceProperties: `["==", "$gpu", "True"]`, BeforeEnd: "snapshot",
			}},
			{ID: "r2", LeaseID: "l1", Type: "virtual:instance", Status: "pending", Instances: &takeover.InstanceTerms{
				VCPUs: 1, MemoryMB: 512, Amount: 2, Affinity: new(bool), ServerGroup: "g",
			}},
			{ID: "r3", LeaseID: "l1", Type: "virtual:floatingip", Status: "pending"},
		},
		Hosts: []takeover.Host{
			{ID: "7", Hypervisor: "node-7", Service: "cmp-7", VCPUs: 4, MemoryMB: 8000, DiskGB: 100, Created: minute(2, 3).Add(5)},
			{ID: "8", VCPUs: 2, MemoryMB: 4000, DiskGB: 50},
		},
		Capabilities: []takeover.Capability{{HostID: "7", Property: "gpu", Value: "True"}, {HostID: "7", Property: "rack", Value: "12", Private: true}},
		Allocations:  []takeover.Allocation{{ReservationID: "r1", HostID: "7"}, {ReservationID: "r2", HostID: "8"}},
		FloatingIPs:  []string{"192.0.2.7"},
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestRowsThatChameleonHasMarkedAsDeletedAreNotRead(t *testing.T) {
	url := labtest.BlazarTables(t)
	labtest.Execute(t, url,
		"ALTER TABLE leases ADD COLUMN deleted VARCHAR(36)",
		`INSERT INTO leases (id, name, start_date, end_date, degraded, deleted)
			VALUES ('here', 'a', '2026-07-01', '2026-07-02', 0, NULL), ('gone', 'b', '2026-07-01', '2026-07-02', 0, 'gone')`)
	got, err := readBlazar(t, url, "")
	if err != nil || len(got.Leases) != 1 || got.Leases[0].ID != "here" {
		t.Errorf("%v, %v", got.Leases, err)
	}
}

func TestAnUnknownSchemaIsRefusedUnlessTheOperatorNamesIt(t *testing.T) {
	url := labtest.BlazarTables(t)
	labtest.Execute(t, url, "UPDATE alembic_version SET version_num = 'bf2011753964'")
	if _, err := readBlazar(t, url, ""); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "bf2011753964") {
		t.Errorf("%v", err)
	}
	if _, err := readBlazar(t, url, "bf2011753964"); err != nil {
		t.Errorf("%v", err)
	}
	if _, err := readBlazar(t, labtest.Database(t), ""); !fault.Is(err, fault.Conflict) {
		t.Errorf("a database without Blazar: %v", err)
	}
}

func TestBlazarsDatabaseIsOnAServer(t *testing.T) {
	if _, err := store.OpenBlazar(t.Context(), store.Options{Connection: "sqlite:///blazar.db"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("%v", err)
	}
}
