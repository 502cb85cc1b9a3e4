// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/almanac-cloud/almanac/reservation/tariff/feed"
)

// tariffOptions are section [tariff].
func tariffOptions(t *feed.Options) []option {
	return []option{
		text(&t.Source, "source", "",
			"File or http(s) URL with what a host costs by time, in money or carbon, for the policy cheapest. Empty means that there is none, and "+
				"cheapest chooses as first-fit.").asSecret(),
		duration(&t.Every, "refresh_interval", 5*time.Minute, time.Second, day,
			"How often Almanac reads the tariff."),
		duration(&t.Timeout, "timeout", 10*time.Second, time.Second, 5*time.Minute,
			"Time limit for reading the tariff."),
		duration(&t.MaxAge, "max_age", 36*time.Hour, 0, 400*day,
			"Age from which cheapest no longer chooses by the tariff: since the last change of the file, or since the time that the server names in Last-Modified, "+
				"or else since the last answer. 0 means no limit."),
	}
}
