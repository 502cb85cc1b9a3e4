// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/almanac-cloud/almanac/reservation/staging"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// Staging is section [staging]: transferring the images of reservations to their hosts
// before the reservations start.
type Staging struct {
	Enabled      bool
	Rules        controller.Rules // Heard follows from [nova] notifications
	RemoveUnused bool             // otherwise Rules.Lifetime does not apply
}

const megabyte = 1_000_000 // bytes

func stagingOptions(s *Staging) []option {
	r := &s.Rules
	return []option{
		boolean(&s.Enabled, "enabled", true,
			"Transfer the image of a reservation to its hosts before the start, and refuse a reservation whose image would arrive "+
				"late. Requires [inventory] source = openstack and Glance in the catalog, or source = simulated. Does not affect reservations without an image."),
		choice(&r.Strategy, "strategy", staging.EDF, staging.Strategies,
			"When images are transferred. edf: as early as possible, earliest deadline first. jit: in the same order, as late as "+
				"possible."),
		scaled(&r.Rate, megabyte, "repository_rate", 100, 1, 1_000_000,
			"Estimated transfer rate from Glance in megabytes (1,000,000 bytes) per second, until Almanac has measured transfers."),
		scaled(&r.Link, megabyte, "link_rate", 0, 0, 1_000_000, "Maximum transfer rate to one host in megabytes per second. 0 means no limit."),
		scaled(&r.Limit, 1<<30, "pool_limit", 0, 0, 1_000_000, "Maximum size in GiB of the images that a host keeps for reservations. 0 means no limit."),
		duration(&r.Margin, "margin", time.Minute, 0, day, "How long before the start of a reservation its image must be on its hosts."),
		duration(&r.Poll, "poll_interval", 5*time.Second, time.Second, time.Minute, "How often Almanac checks for transfers that are due or finished."),
		integer(&r.Factor, "timeout_factor", 3, 1, 100,
			"A transfer fails after this many times its estimated duration plus one minute. Without [nova] notifications Nova does "+
				"not report the end of a transfer, and Almanac considers it finished after the estimated duration."),
		integer(&r.Retries, "retries", 3, 0, 100, "How often a failed transfer is retried for a reservation."),
		duration(&r.RetryDelay, "retry_delay", 30*time.Second, time.Second, time.Hour,
			"Wait before the first retry; doubles each time."),
		boolean(&s.RemoveUnused, "remove_unused_base_images", true,
			"The value of Nova's [image_cache] remove_unused_base_images: whether nova-compute removes unused images from its cache."),
		integer(&r.Lifetime, "remove_unused_original_minimum_age_seconds", 86_400, 60, 1_000_000_000,
			"The value of Nova's [image_cache] remove_unused_original_minimum_age_seconds: the age at which nova-compute removes an "+
				"unused image. Almanac transfers no image earlier than this before the start of a reservation."),
	}
}
