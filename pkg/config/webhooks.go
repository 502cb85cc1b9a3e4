// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/almanac-cloud/almanac/reservation/webhook"
)

// webhookOptions are section [webhooks].
func webhookOptions(s *webhook.Settings) []option {
	return []option{
		list(&s.Allowed, "allowed", nil,
			"Receivers of webhooks: names (hooks.example.org, *.example.org), which may stand for public addresses only, and networks "+
				"(192.0.2.0/24, [2001:db8::/32]), into which any name may lead. Without :PORT only port 443 is allowed; :* is any port. Only an "+
				"item that begins with http:// allows HTTP without TLS. Empty means that no webhooks can be made, and that nothing is sent."),
		integer(&s.MostPerProject, "max_per_project", 10, 1, 100,
			"Maximum number of webhooks of a project."),
		duration(&s.GiveUpAfter, "give_up_after", day, time.Minute, 30*day,
			"How long after a change Almanac tries to tell a webhook of it."),
		text(&s.Source, "source", "almanac",
			"The attribute source of the CloudEvents, which tells several Almanacs apart; such as the URL of the API."),
	}
}
