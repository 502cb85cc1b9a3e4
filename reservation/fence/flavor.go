// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
)

// longest is the largest length of a flavor's name and ID, in characters
// (nova/api/openstack/compute/schemas/flavor_manage.py, parameter_types.name).
const longest = 255

// hostFlavors adds the flavors of a reservation of hosts: one that fills its smallest host,
// and one for each shape in the rules.
func (p *plan) hostFlavors(r *reservation.Reservation) {
	specs := common(r)
	p.wholeHost(r, maps.Clone(specs))
	for _, shape := range p.rules.Flavors {
		own := maps.Clone(specs)
		for key, value := range shape.ExtraSpecs {
			if _, ours := specs[key]; !ours {
				own[key] = value
			}
		}
		p.flavor(r.ID+"-"+plain(shape.Name, longest-len(r.ID)-1), short(FlavorPrefix+r.ID+":"+shape.Name, longest), shape.Resources, own)
	}
}

// wholeHost adds the flavor that fills a whole host. Its root disk is at most
// Rules.RootDisk: Nova stores the root disk size with a server, and refuses to resize the
// server to a flavor with a smaller one (nova/utils.py get_system_metadata_from_image,
// nova/compute/api.py _validate_flavor_image_nostatus). An extra spec requests the rest.
func (p *plan) wholeHost(r *reservation.Reservation, specs map[string]string) {
	takes := p.smallest(r)
	p.flavor(r.ID, FlavorPrefix+r.ID, takes, specs)
	if root := p.rules.RootDisk; root > 0 && takes.DiskGB > root {
		f := p.layout.Flavors[r.ID]
		f.Resources.DiskGB = root
		f.ExtraSpecs["resources:DISK_GB"] = strconv.FormatInt(takes.DiskGB, 10)
		p.layout.Flavors[r.ID] = f
	}
}

// instanceFlavor adds the one flavor of a reservation of instances, with the reserved
// size, or like the flavor for which they are reserved. Each instance uses one unit of the
// reservation's own class.
func (p *plan) instanceFlavor(r *reservation.Reservation) {
	specs := common(r)
	specs[PoolSpec] = r.ID
	if r.Membership.Flavor != "" {
		p.likeFlavor(r, specs)
		return
	}
	p.flavor(r.ID, FlavorPrefix+r.ID, r.Resources, specs)
}

// Requires returns the extra specs with which an instance of any flavor can use the hosts of the
// active reservation, and no other hosts. In a reservation of kind instance, such an instance uses
// one of the promised slices.
func Requires(r *reservation.Reservation) map[string]string {
	if r.Kind == reservation.Hosts {
		return map[string]string{required(Reserved): "required", required(OwnName(r.ID)): "required"}
	}
	return map[string]string{required(Reserved): "required", required(Shared): "required", "resources:" + OwnName(r.ID): "1"}
}

// Binds reports whether an extra spec with that key ties a flavor to a reservation.
func Binds(key string) bool {
	return key == inventory.ReservationMark || key == ProjectMark || key == PoolSpec ||
		strings.HasPrefix(key, required(OwnPrefix)) || strings.HasPrefix(key, "resources:"+OwnPrefix)
}

// common returns the extra specs of every flavor of the reservation.
func common(r *reservation.Reservation) map[string]string {
	specs := Requires(r)
	specs[inventory.ReservationMark], specs[ProjectMark] = r.ID, r.ProjectID
	if r.Status == reservation.Pending || r.Status == reservation.Starting {
		specs[required(Closed)] = "required"
	}
	return specs
}

// flavor adds a flavor that uses exactly the given resources. Nova has no flavors without
// vCPUs or memory (nova/compute/flavors.py create): there the extra spec
// resources:<CLASS>=0 overrides the field of the flavor. Other extra specs name the custom
// classes (nova/scheduler/utils.py ResourceRequest.from_request_spec, strip_zeros).
func (p *plan) flavor(id, name string, takes resource.Vector, specs map[string]string) {
	f := inventory.Flavor{ID: id, Name: name, Resources: takes, ExtraSpecs: specs}
	f.Resources.Custom = nil
	if !takes.IsZero() {
		least(&f, &f.Resources.VCPUs, "VCPU")
		least(&f, &f.Resources.MemoryMB, "MEMORY_MB")
	}
	for _, class := range sorted(takes.Custom) {
		if amount := takes.Custom[class]; amount > 0 {
			specs["resources:"+class] = strconv.FormatInt(amount, 10)
		}
	}
	p.layout.Flavors[id] = f
}

func least(f *inventory.Flavor, amount *int64, class string) {
	if *amount == 0 {
		*amount = 1
		f.ExtraSpecs["resources:"+class] = "0"
	}
}

// smallest returns the vCPUs, memory and disk that every host of the reservation has at least; zero
// if none of the hosts is known. Hosts for which Placement has no vCPUs or no memory do not count,
// since no flavor fits there.
func (p *plan) smallest(r *reservation.Reservation) (least resource.Vector) {
	first := true
	for _, name := range r.HostNames() {
		i, there := p.hosts.Index(name)
		if !there {
			continue
		}
		c := p.hosts.Host(i).Capacity
		if c.VCPUs == 0 || c.MemoryMB == 0 {
			continue
		}
		if first {
			least = resource.Vector{VCPUs: c.VCPUs, MemoryMB: c.MemoryMB, DiskGB: c.DiskGB}
		}
		least.VCPUs, least.MemoryMB, least.DiskGB = min(least.VCPUs, c.VCPUs), min(least.MemoryMB, c.MemoryMB), min(least.DiskGB, c.DiskGB)
		first = false
	}
	return least
}

// plain returns text with only the characters that Nova allows in a flavor's ID, and with at most n
// of them. Changed text ends in a hash, so that different texts stay different.
func plain(text string, n int) string {
	letters := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c) {
			return c
		}
		return '_'
	}, text)
	if letters != text {
		letters += "-" + sign(text)
	}
	return short(letters, n)
}

// short returns text cut to at most n bytes. Cut text ends in a hash too.
func short(text string, n int) string {
	if len(text) <= n {
		return text
	}
	sign := "-" + sign(text)
	return strings.ToValidUTF8(text[:n-len(sign)], "") + sign
}

func sign(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}
