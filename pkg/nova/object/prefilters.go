// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// Prefilters states which of Nova's request filters run that require traits of a host, or ask
// Neutron (nova/scheduler/request_filter.py). compute_status_filter and
// ephemeral_encryption_filter always run; those about aggregates are in package filters.
type Prefilters struct {
	// ImageTypes requires a host that supports the disk format of the image ([scheduler]
	// query_placement_for_image_type_support).
	ImageTypes bool
	// ImageMetadata requires a host with the devices and the architecture that the image names
	// ([scheduler] image_metadata_prefilter).
	ImageMetadata bool
	// RoutedNetworks keeps an instance to the segments of its networks ([scheduler]
	// query_placement_for_routed_network_aggregates). Only Neutron knows these, so Almanac
	// cannot judge requests with networks.
	RoutedNetworks bool
}

// traits returns the traits that the request filters require of the host, each once, and what
// it cannot judge. If a flavor and an image contradict each other, Nova fails with an
// exception; nova-scheduler then answers.
func (f Prefilters) traits(r, image reader, p *placing.Request, nova release.Release) (required []string, beyond Unsupported) {
	if f.ImageTypes && !r.yes("is_bfv") {
		if image.null("disk_format") {
			beyond = append(beyond, "the request does not contain the type of its image")
		}
		if trait := "COMPUTE_IMAGE_TYPE_" + strings.ToUpper(image.text("disk_format")); standard(trait) {
			required = append(required, trait)
		}
	}
	if f.ImageMetadata {
		if image.null("properties") {
			beyond = append(beyond, "the request does not contain the properties of its image")
		}
		required = append(required, ofImage(p.ImageProperties)...)
	}
	if f.RoutedNetworks && len(r.object("requested_networks", "NetworkRequestList 1").list("objects")) > 0 {
		beyond = append(beyond, "only Neutron knows the segments of the request's networks")
	}
	asks := asks{p: p}
	if asks.yes("ephemeral_encryption") {
		required = append(required, "COMPUTE_EPHEMERAL_ENCRYPTION")
		if format := asks.one("ephemeral_encryption_format", "plain", "luks", "luksv2"); format != "" {
			required = append(required, "COMPUTE_EPHEMERAL_ENCRYPTION_"+strings.ToUpper(format))
		}
	}
	if nova.Has(release.PackedVirtqueueFilter) && asks.yes("virtio_packed_ring") {
		required = append(required, "COMPUTE_NET_VIRTIO_PACKED")
	}
	if nova.Has(release.VirtioSoundFilter) && asks.one("sound_model", "sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio") == "virtio" {
		required = append(required, "COMPUTE_SOUND_MODEL_VIRTIO")
	}
	return sorted(required), append(beyond, asks.beyond...)
}

// prefiltered are the extra specs that traits always reads.
var prefiltered = []string{"hw:ephemeral_encryption", "hw:ephemeral_encryption_format"}

// asks is what a flavor and an image require by the extra spec hw:KEY and the property hw_KEY
// (nova/virt/hardware.py _get_flavor_image_meta).
type asks struct {
	p      *placing.Request
	beyond Unsupported
}

// yes reports whether either of them requires it. They must not contradict each other.
func (a *asks) yes(key string) bool {
	flavor, inFlavor := a.p.ExtraSpecs["hw:"+key]
	image, inImage := a.p.ImageProperties["hw_"+key]
	if inFlavor && inImage && inventory.IsTrue(flavor) != inventory.IsTrue(image) {
		a.contradict(key)
	}
	return inventory.IsTrue(flavor) || inventory.IsTrue(image)
}

// one returns the value that either of them requires, or "".
func (a *asks) one(key string, values ...string) string {
	flavor, image := a.p.ExtraSpecs["hw:"+key], a.p.ImageProperties["hw_"+key]
	if flavor != "" && image != "" && flavor != image {
		a.contradict(key)
	}
	value := flavor
	if value == "" {
		value = image
	}
	if value != "" && !slices.Contains(values, value) {
		a.beyond = append(a.beyond, fmt.Sprintf("hw:%s has the value %.100q, which is none of %s", key, value, strings.Join(values, ", ")))
	}
	return value
}

func (a *asks) contradict(key string) {
	a.beyond = append(a.beyond, fmt.Sprintf("the flavor's extra spec hw:%s and the image's property hw_%[1]s contradict each other", key))
}

// ofImage returns the traits for the properties of an image. If one has no trait, none counts:
// Nova stops at the first such property, and hw_viommu_model never has a trait, since the
// existing ones begin with COMPUTE_VIOMMU_MODEL.
func ofImage(properties map[string]string) (required []string) {
	for property, start := range propertyTraits {
		value, has := properties[property]
		if !has {
			continue
		}
		trait := start + "_" + strings.ToUpper(strings.ReplaceAll(value, "-", "_"))
		if !standard(trait) {
			return nil
		}
		required = append(required, trait)
	}
	return required
}

// propertyTraits maps image properties to the prefixes of trait names.
var propertyTraits = map[string]string{
	"hw_cdrom_bus":              "COMPUTE_STORAGE_BUS",
	"hw_disk_bus":               "COMPUTE_STORAGE_BUS",
	"hw_video_model":            "COMPUTE_GRAPHICS_MODEL",
	"hw_vif_model":              "COMPUTE_NET_VIF_MODEL",
	"hw_architecture":           "HW_ARCH",
	"hw_emulation_architecture": "COMPUTE_ARCH",
	"hw_viommu_model":           "COMPUTE_VIOMMU",
}

// standardTraits maps the prefixes to the suffixes of the traits in os-traits, which always
// exist in Placement.
var standardTraits = map[string]string{
	"COMPUTE_IMAGE_TYPE":     "AKI AMI ARI ISO PLOOP QCOW2 RAW VDI VHD VHDX VMDK",
	"COMPUTE_STORAGE_BUS":    "FDC IDE LXC SATA SCSI UML USB VIRTIO XEN",
	"COMPUTE_GRAPHICS_MODEL": "BOCHS CIRRUS GOP NONE QXL VGA VIRTIO VMVGA XEN",
	"COMPUTE_NET_VIF_MODEL":  "E1000 E1000E IGB LAN9118 NE2K_PCI NETFRONT PCNET RTL8139 SPAPR_VLAN SRIOV VIRTIO VMXNET VMXNET3",
	"HW_ARCH": "AARCH64 ALPHA ARMV6 ARMV7 ARMV7B CRIS I686 IA64 LM32 M68K MICROBLAZE MICROBLAZEEL MIPS MIPS64 MIPS64EL MIPSEL " +
		"OPENRISC PARISC PARISC64 PPC PPC64 PPC64LE PPCEMB PPCLE S390 S390X SH4 SH4EB SPARC SPARC64 UNICORE32 X86_64 XTENSA XTENSAEB",
	"COMPUTE_ARCH": "AARCH64 MIPSEL PPC64LE RISCV64 S390X X86_64",
}

// standard reports whether os-traits contains the trait; false for a trait without one of the
// prefixes in standardTraits.
func standard(trait string) bool {
	for start, ends := range standardTraits {
		if end, begins := strings.CutPrefix(trait, start+"_"); begins && slices.Contains(strings.Fields(ends), end) {
			return true
		}
	}
	return false
}
