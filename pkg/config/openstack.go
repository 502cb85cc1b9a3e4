package config

import "time"

// Client is section [nova], [placement] or [glance]: how that service is reached. Almanac logs
// in as the user of [keystone_authtoken].
type Client struct {
	RegionName       string   // empty: any
	ValidInterfaces  []string // in the order in which they are tried
	EndpointOverride string   // empty: as the catalog says
	CAFile           string
	Insecure         bool
	Timeout          time.Duration
}

// Nova is section [nova].
type Nova struct {
	Client
	MaxMicroversion string
	Notifications   bool   // listen to Nova's notifications
	TransportURL    string // may hold a password; empty: that of [DEFAULT]
}

// Healing is section [healing].
type Healing struct {
	Enabled       bool
	Grace, Window time.Duration
}

func clientOptions(c *Client, service string) []option {
	return []option{
		text(&c.RegionName, "region_name", "", "Region whose "+service+" is used. Empty means the first in the catalog."),
		list(&c.ValidInterfaces, "valid_interfaces", []string{"internal", "public"},
			"Which of its endpoints in the catalog is used: the first of these that is there."),
		text(&c.EndpointOverride, "endpoint_override", "", "Its address, instead of that of the catalog."),
		text(&c.CAFile, "cafile", "", "Authorities that may sign its certificate. Empty means the system's."),
		boolean(&c.Insecure, "insecure", false, "Do not verify its certificate."),
		duration(&c.Timeout, "timeout", 30*time.Second, time.Second, 10*time.Minute, "How long one call may take."),
	}
}

func novaOptions(n *Nova) []option {
	return append(clientOptions(&n.Client, "Nova"),
		text(&n.MaxMicroversion, "max_microversion", "2.100",
			"Highest microversion of Nova's API that is used, where Nova has it. At least 2.69 is needed; from 2.100 on "+
				"Nova tells the scheduler hints of an instance."),
		boolean(&n.Notifications, "notifications", false,
			"Listen to Nova's versioned notifications, on a queue of Almanac's own, and look at once where something has "+
				"changed. Without them changes are seen at the next refresh_interval."),
		text(&n.TransportURL, "transport_url", "",
			"Nova's message broker, where it is not that of [DEFAULT].").asSecret(),
	)
}

func healingOptions(h *Healing) []option {
	return []option{
		boolean(&h.Enabled, "enabled", true,
			"Replace hosts of reservations that have failed, are disabled or have left the cloud."),
		duration(&h.Grace, "grace", time.Minute, 0, day, "How long a host must have failed before it is replaced."),
		duration(&h.Window, "window", time.Hour, 0, 365*day,
			"How long before its start a reservation is healed. Until then a failed host may come back."),
	}
}
