// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/takeover"
)

// BlazarSchemas are the last migrations of the releases of Blazar whose tables ReadBlazar reads: Zed
// to 2024.2, and 2025.1 and later (blazar/db/migration/alembic_migrations/versions).
var BlazarSchemas = []string{"02e2f2186d98", "553383923ca0"}

// Blazar is the database of an OpenStack Blazar. It is only read.
type Blazar struct{ s *Store }

// OpenBlazar connects to the database of a Blazar, with the settings of Options for a database
// server. It fails with an Invalid fault with the field connection if that names no server.
func OpenBlazar(ctx context.Context, o Options) (*Blazar, error) {
	if at, err := parseConnection(o.Connection); err != nil {
		return nil, err
	} else if _, is := at.(server); !is {
		return nil, fault.Field("connection", "must be a database of MariaDB or MySQL, as in mysql+pymysql://reader:PASSWORD@db.example/blazar")
	}
	s, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Blazar{s}, nil
}

// Close closes all connections.
func (b *Blazar) Close() error { return b.s.Close() }

// Read returns what the database contains, as it is at one moment, without rows that are marked as
// deleted, as Chameleon's Blazar marks them. It fails with a Conflict fault if the schema is neither
// one of BlazarSchemas nor the one that also names.
func (b *Blazar) Read(ctx context.Context, also string) (found takeover.Database, err error) {
	err = b.s.read(ctx, func(tx *gorm.DB) error {
		r := blazarReader{tx: tx}
		if err := r.check(also); err != nil {
			return err
		}
		found = r.database()
		return r.err
	})
	return found, fault.While(err, "read Blazar's database")
}

// blazarReader reads in one transaction. It stops at its first error.
type blazarReader struct {
	tx  *gorm.DB
	err error
}

// check returns an error if the database is not Blazar's, or of a schema that Almanac does not know.
// also is one more schema to accept.
func (r *blazarReader) check(also string) error {
	if !r.tx.Migrator().HasTable("alembic_version") || !r.tx.Migrator().HasTable("computehost_allocations") {
		return fault.New(fault.Conflict, "it has no table alembic_version or computehost_allocations; is it the database of Blazar?")
	}
	var versions []string
	if err := r.tx.Raw("SELECT version_num FROM alembic_version").Scan(&versions).Error; err != nil {
		return err
	}
	for _, v := range versions {
		if v != also && !slices.Contains(BlazarSchemas, v) {
			return fault.New(fault.Conflict, "its schema is %s; Almanac knows %s, those of Blazar from Zed on. If yours has the same columns, name it with --schema %s",
				v, strings.Join(BlazarSchemas, " and "), v)
		}
	}
	if len(versions) == 0 {
		return fault.New(fault.Conflict, "its table alembic_version is empty; is it the database of Blazar?")
	}
	return nil
}

// rows scans the columns of those rows of a table that are not marked as deleted into a list.
func (r *blazarReader) rows(list any, columns, table string) {
	if r.err != nil {
		return
	}
	query := "SELECT " + columns + " FROM " + table
	if r.tx.Migrator().HasColumn(table, "deleted") {
		query += " WHERE deleted IS NULL OR deleted IN ('', '0')"
	}
	r.err = r.tx.Raw(query).Scan(list).Error
}

// at returns an instant of a DATETIME column, which has no zone and is UTC; 0 for null.
func (r *blazarReader) at(text *string) span.Instant {
	if text == nil || r.err != nil {
		return 0
	}
	at, err := time.Parse(time.DateTime, *text)
	if err != nil {
		r.err = fmt.Errorf("decode a time: %w", err)
	}
	return span.At(at)
}

func (r *blazarReader) database() (d takeover.Database) {
	d.Leases, d.Events = r.leases(), r.events()
	d.Reservations = r.reservations()
	d.Hosts, d.Capabilities = r.hosts(), r.capabilities()
	r.rows(&d.Allocations, "reservation_id, compute_host_id AS host_id", "computehost_allocations")
	r.rows(&d.FloatingIPs, "floating_ip_address", "floatingips")
	return d
}

// leases returns Blazar's leases without their reservations.
func (r *blazarReader) leases() (list []takeover.Lease) {
	var rows []struct {
		ID, Name, UserID, ProjectID, Status      string
		StartDate, EndDate, CreatedAt, UpdatedAt *string
	}
	r.rows(&rows, "id, name, COALESCE(user_id, '') AS user_id, COALESCE(project_id, '') AS project_id, COALESCE(status, '') AS status,"+
		" start_date, end_date, created_at, updated_at", "leases")
	for _, row := range rows {
		list = append(list, takeover.Lease{
			ID: row.ID, Name: row.Name, UserID: row.UserID, ProjectID: row.ProjectID, Status: row.Status,
			Start: r.at(row.StartDate), End: r.at(row.EndDate), Created: r.at(row.CreatedAt), Updated: r.at(row.UpdatedAt),
		})
	}
	return list
}

func (r *blazarReader) events() (list []takeover.Event) {
	var rows []struct {
		LeaseID, EventType, Status string
		Time                       *string
	}
	r.rows(&rows, "COALESCE(lease_id, '') AS lease_id, COALESCE(event_type, '') AS event_type, COALESCE(status, '') AS status, time", "events")
	for _, row := range rows {
		list = append(list, takeover.Event{LeaseID: row.LeaseID, Type: row.EventType, Status: row.Status, Time: r.at(row.Time)})
	}
	return list
}

func (r *blazarReader) reservations() (list []takeover.Reservation) {
	hosts, instances := r.hostTerms(), r.instanceTerms()
	var rows []struct{ ID, LeaseID, ResourceType, Status string }
	r.rows(&rows, "id, lease_id, COALESCE(resource_type, '') AS resource_type, COALESCE(status, '') AS status", "reservations")
	for _, row := range rows {
		list = append(list, takeover.Reservation{
			ID: row.ID, LeaseID: row.LeaseID, Type: row.ResourceType, Status: row.Status, Hosts: hosts[row.ID], Instances: instances[row.ID],
		})
	}
	return list
}

// hostTerms returns what reservations of hosts want, by their ids.
func (r *blazarReader) hostTerms() map[string]*takeover.HostTerms {
	var rows []struct {
		ReservationID string
		takeover.HostTerms
	}
	r.rows(&rows, "COALESCE(reservation_id, '') AS reservation_id, COALESCE(count_range, '') AS count_range, COALESCE(before_end, '') AS before_end,"+
		" COALESCE(hypervisor_properties, '') AS hypervisor_properties, COALESCE(resource_properties, '') AS resource_properties", "computehost_reservations")
	terms := make(map[string]*takeover.HostTerms, len(rows))
	for i := range rows {
		terms[rows[i].ReservationID] = &rows[i].HostTerms
	}
	return terms
}

// instanceTerms returns what reservations of instances want, by their ids.
func (r *blazarReader) instanceTerms() map[string]*takeover.InstanceTerms {
	var rows []struct {
		ReservationID, ResourceProperties, ServerGroupID string
		Cores, RAM, Disk                                 int64
		Amount                                           int
		Affinity                                         *bool
	}
	r.rows(&rows, "COALESCE(reservation_id, '') AS reservation_id, COALESCE(resource_properties, '') AS resource_properties,"+
		" COALESCE(server_group_id, '') AS server_group_id, vcpus AS cores, memory_mb AS ram, disk_gb AS disk, amount, affinity", "instance_reservations")
	terms := make(map[string]*takeover.InstanceTerms, len(rows))
	for _, row := range rows {
		terms[row.ReservationID] = &takeover.InstanceTerms{
			VCPUs: row.Cores, MemoryMB: row.RAM, DiskGB: row.Disk, Amount: row.Amount, Affinity: row.Affinity,
			ResourceProperties: row.ResourceProperties, ServerGroup: row.ServerGroupID,
		}
	}
	return terms
}

// hosts returns Blazar's hosts.
func (r *blazarReader) hosts() (list []takeover.Host) {
	var rows []struct {
		ID, Hypervisor, Service string
		Cores, RAM, Disk        int64
		CreatedAt               *string
	}
	r.rows(&rows, "id, COALESCE(hypervisor_hostname, '') AS hypervisor, COALESCE(service_name, '') AS service,"+
		" vcpus AS cores, memory_mb AS ram, local_gb AS disk, created_at", "computehosts")
	for _, row := range rows {
		list = append(list, takeover.Host{
			ID: row.ID, Hypervisor: row.Hypervisor, Service: row.Service,
			VCPUs: row.Cores, MemoryMB: row.RAM, DiskGB: row.Disk, Created: r.at(row.CreatedAt),
		})
	}
	return list
}

// capabilities returns the extra capabilities of Blazar's hosts.
func (r *blazarReader) capabilities() (list []takeover.Capability) {
	var properties []struct {
		ID, PropertyName string
		Private          bool
	}
	r.rows(&properties, "id, property_name, private", "resource_properties")
	var values []struct{ HostID, PropertyID, Value string }
	r.rows(&values, "COALESCE(computehost_id, '') AS host_id, property_id, capability_value AS value", "computehost_extra_capabilities")
	for _, v := range values {
		for _, p := range properties {
			if p.ID == v.PropertyID {
				list = append(list, takeover.Capability{HostID: v.HostID, Property: p.PropertyName, Value: v.Value, Private: p.Private})
			}
		}
	}
	return list
}
