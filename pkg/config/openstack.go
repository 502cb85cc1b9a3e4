package config

import "time"

// Client is section [nova], [placement], [glance] or [ironic]: how to reach that service. Almanac
// authenticates as the user of [keystone_authtoken].
type Client struct {
	RegionName       string   // empty: any
	ValidInterfaces  []string // in order of preference
	EndpointOverride string   // empty: from the catalog
	CAFile           string
	Insecure         bool
	Timeout          time.Duration
}

// Nova is section [nova].
type Nova struct {
	Client
	MaxMicroversion string
	Notifications   bool   // listen to Nova's notifications
	TransportURL    string // may hold a password; empty: [DEFAULT] transport_url
}

// Healing is section [healing]: replacing failed hosts of reservations.
type Healing struct {
	Enabled       bool
	Grace, Window time.Duration
}

func clientOptions(c *Client, service string) []option {
	return []option{
		text(&c.RegionName, "region_name", "", "Region of "+service+". It may be empty only if the catalog has the service in a single region."),
		list(&c.ValidInterfaces, "valid_interfaces", []string{"internal", "public"},
			"Interfaces of its catalog endpoints in order of preference."),
		text(&c.EndpointOverride, "endpoint_override", "", "URL of the service, instead of the one in the catalog."),
		text(&c.CAFile, "cafile", "", "PEM file with the CA certificates that may sign its certificate. Empty means the CAs of the system."),
		boolean(&c.Insecure, "insecure", false, "Do not verify its certificate."),
		duration(&c.Timeout, "timeout", 30*time.Second, time.Second, 10*time.Minute, "Time limit for one call."),
	}
}

func novaOptions(n *Nova) []option {
	return append(clientOptions(&n.Client, "Nova"),
		text(&n.MaxMicroversion, "max_microversion", "2.100",
			"Highest microversion of Nova's API that Almanac uses. Almanac requires at least 2.69; since 2.100 Nova reports the "+
				"scheduler hints of an instance."),
		boolean(&n.Notifications, "notifications", false,
			"Listen to Nova's versioned notifications on a separate queue and read changes immediately. Without them Almanac sees "+
				"changes at the next refresh_interval."),
		text(&n.TransportURL, "transport_url", "",
			"URL of Nova's message broker. Empty means [DEFAULT] transport_url.").asSecret(),
	)
}

func healingOptions(h *Healing) []option {
	return []option{
		boolean(&h.Enabled, "enabled", true,
			"Replace hosts of reservations that failed, were disabled or left the cloud."),
		duration(&h.Grace, "grace", time.Minute, 0, day, "How long a host must be down before it is replaced."),
		duration(&h.Window, "window", time.Hour, 0, 365*day,
			"How long before its start Almanac heals a reservation. Before that, a failed host may recover."),
	}
}
