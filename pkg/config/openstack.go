// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// Nova is section [nova].
type Nova struct {
	openstack.Options
	Notifications bool   // listen to Nova's notifications
	TransportURL  string // may hold a password; empty: [DEFAULT] transport_url
}

// Healing is section [healing]: replacing failed hosts of reservations.
type Healing struct {
	Enabled bool
	Rules   upkeep.HealingRules // Settle follows from [inventory]
}

// clientOptions returns the options of section [nova], [placement], [glance] or [ironic]: how to
// reach that service as the user of [keystone_authtoken].
func clientOptions(c *openstack.Options, service string) []option {
	return []option{
		text(&c.Region, "region_name", "", "Region of "+service+". It may be empty only if the catalog has the service in a single region."),
		list(&c.Interfaces, "valid_interfaces", []string{"internal", "public"},
			"Interfaces of "+service+"'s endpoints in the catalog, in order of preference."),
		text(&c.Override, "endpoint_override", "", "URL of "+service+", instead of the one in the catalog."),
		text(&c.CAFile, "cafile", "", "PEM file with the CA certificates that may sign the certificate of "+service+". Empty means the CAs of the system."),
		boolean(&c.Insecure, "insecure", false, "Do not verify the certificate of "+service+"."),
		duration(&c.Timeout, "timeout", 30*time.Second, time.Second, 10*time.Minute, "Time limit for one call."),
	}
}

func novaOptions(n *Nova) []option {
	return append(clientOptions(&n.Options, "Nova"),
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
		duration(&h.Rules.Grace, "grace", time.Minute, 0, day, "How long a host must be down before it is replaced."),
		duration(&h.Rules.Window, "window", time.Hour, 0, 365*day,
			"How long before its start Almanac heals a reservation. Before that, a failed host may recover."),
	}
}
