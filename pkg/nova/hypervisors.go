// SPDX-License-Identifier: Apache-2.0

package nova

import (
	"context"
	"net/url"

	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Hypervisor is a compute node.
type Hypervisor struct {
	ID   string // UUID, also of its resource provider in Placement
	Name string // hypervisor_hostname, also of its resource provider
	Host string // of its nova-compute
	IP   string // host_ip, of its nova-compute
	Type string // "QEMU", "ironic", …
	// Version is the hypervisor's version, 1002003 for 1.2.3; 0 means unknown.
	Version int64
	// DiskMissing is how many GiB less are free on it than its instances leave.
	DiskMissing int64
}

// beforeUptime is the last microversion whose list of hypervisors comes from Nova's database
// alone: since 2.88 Nova asks every nova-compute for its uptime.
var beforeUptime = openstack.Microversion{Major: 2, Minor: 87}

// Hypervisors returns the compute nodes (GET /os-hypervisors/detail,
// nova/api/openstack/compute/hypervisors.py). Their capacity comes from Placement, which counts
// what instances were promised; only Nova knows what is missing on the disk beyond that.
//
// Nova removes nodes without a service from a page after cutting it, and then treats that page
// as the last: only an empty page is the end.
func (c *Client) Hypervisors(ctx context.Context) ([]Hypervisor, error) {
	const doing = "list the hypervisors"
	var all []Hypervisor
	err := c.paged(doing, "os-hypervisors/detail", url.Values{}, func(path string) (string, bool, error) {
		var body struct {
			Hypervisors []struct {
				ID      string
				Name    string `json:"hypervisor_hostname"`
				IP      string `json:"host_ip"`
				Type    string `json:"hypervisor_type"`
				Version int64  `json:"hypervisor_version"`
				Service struct{ Host string }
				Disk    *int64 `json:"free_disk_gb"`         // null before its first report
				Least   *int64 `json:"disk_available_least"` // null if its driver does not report it
			} `json:"hypervisors"`
		}
		if err := c.service.GetAtMost(ctx, beforeUptime, doing, path, &body); err != nil {
			return "", false, err
		}
		if body.Hypervisors == nil {
			return "", false, c.service.Malformed(doing, "it contains no list of hypervisors")
		}
		last := ""
		for _, h := range body.Hypervisors {
			if h.ID == "" || h.Name == "" || h.Service.Host == "" {
				return "", false, c.service.Malformed(doing, "a hypervisor has no id, name or host")
			}
			one := Hypervisor{ID: h.ID, Name: h.Name, Host: h.Service.Host, IP: h.IP, Type: h.Type, Version: h.Version}
			if h.Disk != nil && h.Least != nil {
				one.DiskMissing = max(0, *h.Disk-*h.Least)
			}
			all = append(all, one)
			last = h.ID
		}
		return last, last != "", nil
	})
	return all, err
}
