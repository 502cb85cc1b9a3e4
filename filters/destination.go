// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Destination keeps a request to the host, node and cell that it names, to forced hosts and
// nodes, and off ignored hosts (nova/scheduler/host_manager.py get_filtered_hosts, and in_tree
// in nova/scheduler/utils.py resources_from_request_spec).
type Destination struct{}

func (Destination) Name() string { return "DestinationFilter" }

// For implements Filter. It keeps the hosts, nodes and cell that the request names, without those that
// it excludes.
func (Destination) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	d := destination{s: s, r: r}
	if r.Host != "" {
		d.limit(s.Index, r.Host)
	}
	if r.Node != "" {
		d.limit(s.Node, r.Node)
	}
	if len(r.ForceHosts) > 0 {
		d.limit(s.Index, r.ForceHosts...)
	}
	if len(r.ForceNodes) > 0 {
		d.limit(s.Node, r.ForceNodes...)
	}
	if d.only == nil && r.Cell == "" && len(r.IgnoreHosts) == 0 {
		return nil
	}
	return d
}

type destination struct {
	s    *inventory.States
	r    *placing.Request
	only []hostset.Set
}

// limit allows only the named hosts; place returns the index of a host by its name.
func (d *destination) limit(place func(string) (int, bool), names ...string) {
	set := hostset.New(d.s.Len())
	for _, name := range names {
		if i, known := place(name); known {
			set.Add(i)
		}
	}
	d.only = append(d.only, set)
}

// Keep implements Test.
func (d destination) Keep(hosts hostset.Set) {
	for _, set := range d.only {
		hosts.Keep(set)
	}
	for _, name := range d.r.IgnoreHosts {
		if i, known := d.s.Index(name); known {
			hosts.Remove(i)
		}
	}
	if d.r.Cell == "" {
		return
	}
	for i := range hosts.All() {
		if d.s.Host(i).Cell != d.r.Cell {
			hosts.Remove(i)
		}
	}
}

// Why implements Test.
func (d destination) Why(i int) string {
	h := d.s.Host(i)
	for _, set := range d.only {
		if !set.Has(i) {
			return "the request names another host"
		}
	}
	for _, name := range d.r.IgnoreHosts {
		if strings.EqualFold(name, h.Name) {
			return "the request excludes this host"
		}
	}
	if d.r.Cell != "" && h.Cell == "" {
		return "the cell of the host is unknown"
	}
	return "the host is not in the cell " + d.r.Cell
}
