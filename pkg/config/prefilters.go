package config

// Prefilters are the options of section [scheduler] about Nova's request filters that
// require traits of a host or ask Neutron, as Nova has them.
type Prefilters struct {
	ImageTypes     bool // query_placement_for_image_type_support
	ImageMetadata  bool // image_metadata_prefilter
	RoutedNetworks bool // query_placement_for_routed_network_aggregates
}

func prefilterOptions(p *Prefilters) []option {
	return []option{
		boolean(&p.ImageTypes, "query_placement_for_image_type_support", false,
			"Only hosts that take the disk format of the image, as a trait COMPUTE_IMAGE_TYPE_* says. As in Nova."),
		boolean(&p.ImageMetadata, "image_metadata_prefilter", false,
			"Only hosts that have the architecture, buses and models that the properties of the image name, as their traits say. As in Nova."),
		boolean(&p.RoutedNetworks, "query_placement_for_routed_network_aggregates", false,
			"Only hosts on a segment of the networks that are asked for. Requests with networks are passed on then: Nova asks Neutron about them."),
	}
}
