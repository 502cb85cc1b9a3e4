package config

import "time"

// Staging is section [staging]: images that are on the hosts of a reservation when it
// begins.
type Staging struct {
	Enabled        bool
	Strategy       string // "edf" or "jit"
	RepositoryRate int    // megabytes a second
	LinkRate       int    // likewise; 0 is no bound
	PoolLimit      int    // GiB; 0 is no bound
	Margin         time.Duration
	PollInterval   time.Duration
	TimeoutFactor  int
	Retries        int
	RetryDelay     time.Duration

	RemoveUnused     bool
	UnusedMinimumAge int // seconds
}

func stagingOptions(s *Staging) []option {
	return []option{
		boolean(&s.Enabled, "enabled", true,
			"Have the image of a reservation on its hosts when it begins, and refuse one that cannot be there. It takes "+
				"[inventory] source = openstack and Glance in the catalog; reservations without an image are not concerned."),
		choice(&s.Strategy, "strategy", "edf", []string{"edf", "jit"},
			"When images are transferred: edf as soon as possible, those that are needed first first; jit in the same order, as "+
				"late as possible."),
		integer(&s.RepositoryRate, "repository_rate", 100, 1, 1_000_000,
			"How many megabytes (of 1,000,000 bytes) a second come from Glance. It is an estimate: transfers are measured, and "+
				"what was measured counts."),
		integer(&s.LinkRate, "link_rate", 0, 0, 1_000_000, "How many megabytes a second a host takes. 0 means no limit."),
		integer(&s.PoolLimit, "pool_limit", 0, 0, 1_000_000, "How many GiB of images that are promised a host keeps at most. 0 means no limit."),
		duration(&s.Margin, "margin", time.Minute, 0, day, "How long before the start of a reservation its image is to be there."),
		duration(&s.PollInterval, "poll_interval", 5*time.Second, time.Second, time.Minute, "How often it is looked which transfers are due, or over."),
		integer(&s.TimeoutFactor, "timeout_factor", 3, 1, 100,
			"How many times longer than estimated a transfer may take, and a minute more, before it has failed. "+
				"Without [nova] notifications one is taken for done after the estimated time, since nobody says."),
		integer(&s.Retries, "retries", 3, 0, 100, "How often a transfer that has failed is tried again for a reservation."),
		duration(&s.RetryDelay, "retry_delay", 30*time.Second, time.Second, time.Hour,
			"How long it is waited before that; twice as long each time."),
		boolean(&s.RemoveUnused, "remove_unused_base_images", true,
			"As Nova's [image_cache] remove_unused_base_images: nova-compute removes images from its cache that no instance uses."),
		integer(&s.UnusedMinimumAge, "remove_unused_original_minimum_age_seconds", 86_400, 60, 1_000_000_000,
			"As Nova's [image_cache] remove_unused_original_minimum_age_seconds: it does so after they were not used for so long. "+
				"An image is not transferred earlier than that before the start of a reservation."),
	}
}
