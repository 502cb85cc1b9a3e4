// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"slices"
	"strconv"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// hostColumns are the keys of a host in an answer that are not capabilities
// (blazar/db/sqlalchemy/models.py, ComputeHost), and name, which is the host in a request.
var hostColumns = []string{
	"id", "hypervisor_hostname", "service_name", "hypervisor_type", "hypervisor_version", "vcpus", "memory_mb", "local_gb", "cpu_info",
	"status", "availability_zone", "trust_id", "reservable", "created_at", "updated_at", "name",
}

// IsColumn reports whether a name is that of a column, which is no property in Blazar's API.
func IsColumn(name string) bool { return slices.Contains(hostColumns, name) }

// Host returns a host for an answer: its columns, and its properties as texts beside them, without
// the names of columns and those that the caller does not see.
func Host(h *inventory.Host, sees func(property string) bool) map[string]any {
	host := map[string]any{
		"id": HostID(h), "hypervisor_hostname": h.HypervisorName(), "service_name": h.Name,
		"hypervisor_type": h.Hypervisor.Type, "hypervisor_version": h.Hypervisor.Version,
		"vcpus": h.Capacity.VCPUs, "memory_mb": h.Capacity.MemoryMB, "local_gb": h.Capacity.DiskGB, "cpu_info": "",
		"status": nil, "availability_zone": h.Zone, "trust_id": nil, "reservable": h.Reservable && h.Failure() == "",
		"created_at": rowTimeOrNull(h.Capabilities.Created), "updated_at": rowTimeOrNull(h.Capabilities.Updated),
	}
	for name := range h.Properties {
		if sees(name) && !IsColumn(name) {
			host[name] = h.Text(name)
		}
	}
	return host
}

// rowTimeOrNull returns the instant in the form of Blazar's database; nil, which becomes null, for 0.
func rowTimeOrNull(at span.Instant) any {
	if at == 0 {
		return nil
	}
	return RowTime(at)
}

// HostID returns the id of a host: decimal digits.
func HostID(h *inventory.Host) string { return strconv.FormatInt(h.Number, 10) }

// FindHost returns the index of the host with an id, or otherwise with a name: Almanac's or that of
// its hypervisor.
func FindHost(s *inventory.Snapshot, named string) (int, bool) {
	number, _ := strconv.ParseInt(named, 10, 64)
	byName, found := s.Index(named)
	byHypervisor := -1
	for i, h := range s.Hosts() {
		switch {
		case number > 0 && h.Number == number && HostID(h) == named:
			return i, true
		case h.HypervisorName() == named:
			byHypervisor = i
		}
	}
	if !found && byHypervisor >= 0 {
		return byHypervisor, true
	}
	return byName, found
}

// ReadName returns the name or id of the host that a request adds.
func ReadName(o Object) (string, error) {
	for _, key := range []string{"id", "name"} {
		if name, ok, err := o.text(key); err != nil || ok && name != "" {
			return name, err
		}
	}
	return "", missing("name")
}

// NoHost returns the error for an id that no host has.
func NoHost(id string) error {
	return fault.New(fault.NotFound, "Object with {'host': '%s'} not found", shorten(id))
}

// NotInNova returns the error for a new host that the inventory does not know.
func NotInNova(name string) error {
	return fault.New(fault.NotFound, "Host '%s' not found!", shorten(name))
}
