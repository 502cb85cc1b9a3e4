// SPDX-License-Identifier: Apache-2.0

package config

import "github.com/almanac-cloud/almanac/pkg/nova/object"

// prefilterOptions returns the options of section [scheduler] for Nova's request filters that
// require traits of a host or ask Neutron.
func prefilterOptions(p *object.Prefilters) []option {
	return []option{
		boolean(&p.ImageTypes, "query_placement_for_image_type_support", false,
			"Use only hosts with the trait COMPUTE_IMAGE_TYPE_* for the disk format of the image. As in Nova."),
		boolean(&p.ImageMetadata, "image_metadata_prefilter", false,
			"Use only hosts whose traits match the architecture, buses and models in the properties of the image. As in Nova."),
		boolean(&p.RoutedNetworks, "query_placement_for_routed_network_aggregates", false,
			"Use only hosts on a segment of the requested networks. Almanac then forwards requests with networks, because Nova asks Neutron about them."),
	}
}
