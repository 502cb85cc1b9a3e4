// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
)

// source is the flavor that a reservation's flavor copies, in the JSON of Nova's API.
type source struct {
	VCPUs      int64             `json:"vcpus"`
	MemoryMB   int64             `json:"ram"`
	RootGB     int64             `json:"disk"`
	Ephemeral  int64             `json:"OS-FLV-EXT-DATA:ephemeral"`
	Swap       json.RawMessage   `json:"swap"` // "" for 0 before 2.75
	ExtraSpecs map[string]string `json:"extra_specs"`
}

// ExtraSpecs returns the extra specs of a flavor in the JSON of Nova's API.
func ExtraSpecs(flavor string) (map[string]string, error) {
	var f source
	err := json.Unmarshal([]byte(flavor), &f)
	return f.ExtraSpecs, err
}

// longestSource bounds the stored text of a flavor. Nova allows 128 extra specs of 510 characters.
const longestSource = 128 << 10

// ForFlavor returns what a reservation for instances of the flavor asks for, except the quantity:
// its resources, and hosts with the traits that it requires and without those that it forbids. text
// is the flavor as JSON in Nova's form. The error is an Invalid fault of the field flavor_id if
// Almanac cannot promise what the flavor requires.
func ForFlavor(f inventory.Flavor, text string) (m reservation.MemberRequest, err error) {
	if err := reservable(f, text); err != nil {
		return m, err
	}
	var filter []any
	required, forbidden := f.Traits()
	for _, trait := range required {
		if !strings.HasPrefix(trait, OwnPrefix) {
			filter = append(filter, []any{"in", trait, "$traits"})
		}
	}
	for _, trait := range forbidden {
		filter = append(filter, []any{"not", []any{"in", trait, "$traits"}})
	}
	m.Kind, m.Resources, m.Membership.Flavor = reservation.Instances, f.Resources, text
	if len(filter) > 0 {
		raw, err := json.Marshal(append([]any{"and"}, filter...))
		if err != nil {
			return m, err
		}
		m.HostProperties = string(raw)
	}
	return m, nil
}

// reservable returns an Invalid fault if instances of the flavor cannot be reserved.
func reservable(f inventory.Flavor, text string) error {
	const field = "flavor_id"
	if _, marked := f.ExtraSpecs[inventory.ReservationMark]; marked {
		return fault.Field(field, "must not be the flavor of a reservation: %s", f.Name)
	}
	if len(text) > longestSource {
		return fault.Field(field, "names a flavor with too many extra specs: %s", f.Name)
	}
	for _, key := range sorted(f.ExtraSpecs) {
		group, name, _ := strings.Cut(key, ":")
		n, err := strconv.ParseInt(f.ExtraSpecs[key], 10, 64)
		switch {
		case strings.HasPrefix(group, "resources") && (err != nil || n > 0) && !promisable(name):
			return fault.Field(field, "names a flavor whose %s=%s Almanac cannot promise", key, f.ExtraSpecs[key])
		case group == "trait" && !slices.Contains([]string{"required", "forbidden"}, f.ExtraSpecs[key]):
			return fault.Field(field, "names a flavor whose %s must be required or forbidden, not %s", key, f.ExtraSpecs[key])
		}
	}
	return nil
}

// promisable reports whether Almanac counts a resource class.
func promisable(class string) bool {
	return slices.Contains([]string{"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"}, class) ||
		strings.HasPrefix(class, "CUSTOM_") && !strings.HasPrefix(class, OwnPrefix)
}

// likeFlavor adds a copy of the flavor for which instances are reserved, with the specs. If its
// text is damaged, the copy has no size, and Diff does not create it.
func (p *plan) likeFlavor(r *reservation.Reservation, specs map[string]string) {
	f := inventory.Flavor{ID: r.ID, Name: FlavorPrefix + r.ID, ExtraSpecs: specs}
	var like source
	if json.Unmarshal([]byte(r.Membership.Flavor), &like) == nil {
		f.Resources = resource.Vector{VCPUs: like.VCPUs, MemoryMB: like.MemoryMB, DiskGB: like.RootGB}
		f.EphemeralGB = like.Ephemeral
		_ = json.Unmarshal(like.Swap, &f.SwapMB) // "" is 0
		for key, value := range like.ExtraSpecs {
			if _, ours := specs[key]; !ours && !Binds(key) {
				specs[key] = value
			}
		}
	}
	p.layout.Flavors[r.ID] = f
}
