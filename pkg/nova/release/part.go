// SPDX-License-Identifier: Apache-2.0

package release

// Part is a part of nova-scheduler that some releases have and others do not. The zero Part
// stands for everything that all releases have.
type Part int

// The parts that differ between releases.
const (
	Always Part = iota
	PackedVirtqueueFilter
	VirtioSoundFilter
	TPMSecretSecurityFilter
	OwnerNovaFilter
	AvailabilityZoneFilter
	HypervisorVersionWeigher
	NumInstancesWeigher
	ImagePropertiesWeigher
	// StrictAddresses is netaddr 1, which does not take 10.1 or 010.0.0.1 for IPv4 addresses
	// (SimpleCIDRAffinityFilter); OpenStack's upper constraints have it since Dalmatian.
	StrictAddresses
)

// Kind is a kind of Part.
type Kind string

// The kinds of parts.
const (
	RequestFilter Kind = "request filter" // of nova/scheduler/request_filter.py
	Filter        Kind = "filter"
	Weigher       Kind = "weigher"
	Rule          Kind = "rule" // not a class or function of its own
)

// parts has each Part's name, as in Nova's code, and the releases that have it: from since on, and
// before until. An until of Unknown means that no known release has dropped it.
var parts = [...]struct {
	kind         Kind
	name         string
	since, until Release
}{
	Always:                   {},
	PackedVirtqueueFilter:    {RequestFilter, "packed_virtqueue_filter", Caracal, Unknown},
	VirtioSoundFilter:        {RequestFilter, "virtio_sound_filter", Flamingo, Unknown},
	TPMSecretSecurityFilter:  {RequestFilter, "tpm_secret_security_filter", Gazpacho, Unknown},
	OwnerNovaFilter:          {RequestFilter, "owner_nova_filter", Hibiscus, Unknown},
	AvailabilityZoneFilter:   {Filter, "AvailabilityZoneFilter", Zed, Bobcat},
	HypervisorVersionWeigher: {Weigher, "HypervisorVersionWeigher", Bobcat, Unknown},
	NumInstancesWeigher:      {Weigher, "NumInstancesWeigher", Bobcat, Unknown},
	ImagePropertiesWeigher:   {Weigher, "ImagePropertiesWeigher", Epoxy, Unknown},
	StrictAddresses:          {Rule, "strict addresses", Dalmatian, Unknown},
}

// Parts returns all parts but Always.
func Parts() []Part {
	all := make([]Part, 0, len(parts)-1)
	for p := range parts[1:] {
		all = append(all, Part(p+1))
	}
	return all
}

// Kind returns the kind of the part.
func (p Part) Kind() Kind { return parts[p].kind }

// String returns the name in Nova's code.
func (p Part) String() string { return parts[p].name }

// Since and Until return the first release that has the part, and the first later one that does
// not; Unknown if there is none.
func (p Part) Since() Release { return parts[p].since }

// Until is described at Since.
func (p Part) Until() Release { return parts[p].until }

// Has reports whether the release has the part.
func (r Release) Has(p Part) bool {
	r = max(r, Zed)
	return r >= p.Since() && (p.Until() == Unknown || r < p.Until())
}

// Named returns the part of that kind and name; Always if all releases have it, or none.
func Named(kind Kind, name string) Part {
	for _, p := range Parts() {
		if p.Kind() == kind && p.String() == name {
			return p
		}
	}
	return Always
}
