// SPDX-License-Identifier: Apache-2.0

package calendar

import "github.com/almanac-cloud/almanac/pkg/api/serving"

// Routes returns the calls about times.
func (s *API) Routes() []serving.Route {
	return []serving.Route{
		serving.Get("/v1/calendar", serving.Rule("calendar:get"), serving.InTurn, serving.OnePage, serving.ByCaller, s.show),
		serving.Get("/v1/usage", serving.Rule("usage:get"), serving.InTurn, serving.OnePage, serving.ByCaller, s.showUsage),
		serving.Get("/v1/reservations.ics", serving.Rule("feed:get"), serving.InTurn, serving.OnePage, serving.ByCaller, serving.ForProject, serving.NoParameters, s.reservationsCalendar),
		serving.Get("/v1/feed", serving.Rule("feed:get"), serving.InLine, serving.Brief, serving.ByCaller, serving.ForProject, serving.NoParameters, serving.JSON(s.feedLink)),
		serving.Get(feeds+":project_id/:file", s.withLink(), serving.InTurn, serving.OnePage, serving.ByHolder, s.feed),
	}
}

// withLink admits whoever knows the link to a feed.
func (s *API) withLink() serving.Access {
	return serving.Access{Caller: "the feed's link", Admit: []serving.Step{s.signedLink}, Secret: true}
}
