// SPDX-License-Identifier: Apache-2.0

package source

import "slices"

// The places of the fields of a reservation.
const (
	inRequest            = "the request (pkg/api/reservations/convert.go, request)"
	inFlags              = "the flags of reservation create"
	inMaintenance        = "the flags of host maintenance"
	inForm               = "the form of the page (form-request.js, bodyOf)"
	inAgain              = "the page books the same again (form-fields.js, termsOf, otherTerms)"
	inChange             = "the change (pkg/api/reservations/convert.go, changeOf)"
	inChangeFlags        = "the flags of reservation change"
	inChangeForm         = "the forms of a change on the page (reservation-fields.js, written)"
	inLog                = "the text of a change in the log (planning.Difference)"
	inAnswer             = "the answer (v1.Of)"
	inColumns            = "the columns of the command line (reservationFields)"
	inPage               = "the page of a reservation (reservation-view.js, reservation-words.js)"
	inGuide              = "docs/api.md"
	inFeed               = "the feed"
	inBlazarRequest      = "the request in Blazar's form"
	inBlazarChange       = "the change in Blazar's form"
	inBlazarAnswer       = "the answer in Blazar's form"
	inNotification       = "the notification"
	inBlazarNotification = "the notification in Blazar's form"
)

// Groups of places.
var (
	asking   = []string{inRequest, inFlags, inMaintenance, inForm, inAgain, inBlazarRequest}
	changing = []string{inChange, inChangeFlags, inChangeForm, inBlazarChange}
	// restShows and restTakes are the places that follow the REST API.
	restShows   = []string{inAnswer, inColumns, inPage, inGuide}
	restTakes   = []string{inRequest, inFlags, inMaintenance, inForm, inAgain, inChange, inChangeFlags, inChangeForm}
	blazarShows = []string{inBlazarAnswer, inBlazarNotification}
	blazarForm  = []string{inBlazarRequest, inBlazarChange, inBlazarAnswer, inBlazarNotification}
)

// absent lists the fields that are not in a place, and why.
var absent = []struct {
	fields string
	places []string
	why    string
}{
	{
		"ID ProjectID UserID Status Claims.Slices Claims.Span.Start Claims.Span.End Released PromisedEnd DelayedByBoot Degraded Created Updated Version " +
			"Events.Type Events.Time Events.State Events.Done Events.Detail Events.Holder Events.Until Membership.LeaseID Membership.ServerGroup",
		slices.Concat(asking, changing, []string{inLog}), "Almanac decides it, and who asks follows from the token",
	},
	{"Occurrence.SeriesID Occurrence.Local", slices.Concat(asking, changing, []string{inLog}), "a series is requested by its own calls, and no reservation leaves it"},
	{"Occurrence.SeriesID Occurrence.Local", blazarShows, "Blazar's form does not know it"},
	{"Occurrence.SeriesID Occurrence.Local", []string{inFeed}, "each occurrence is an event of its own, at its own time"},
	{"Hold", slices.Concat(asking, changing, []string{inLog}), "it is the hold of the request, kept while there is no room; what waits cannot be changed"},
	{"Hold", slices.Concat(restShows, []string{inNotification, inFeed}, blazarShows), "only what waits has it, and answers have it in waiting"},
	{"Window.Start Window.End", slices.Concat(asking, changing, []string{inLog}), "it is the window of the request; a change of the time ends it"},
	{"Quantity Kind HostProperties Policy Resources Affinity Together Image OnEnd BeforeEnd Notice", []string{inMaintenance}, "maintenance is of the hosts that it names, and nobody uses it"},
	{"Maintenance Claims.Host", []string{inFlags}, "host maintenance plans it"},
	{"Claims.Host", slices.Concat(changing, []string{inLog, inBlazarRequest}), "Almanac chooses the hosts; only a request for maintenance names them"},
	{"Claims.Slices Claims.Span.Start Claims.Span.End", restShows, "the answer has the names of the hosts; the calendar shows the claims"},
	{"Claims.Host Claims.Slices Claims.Span.Start Claims.Span.End", blazarShows, "Blazar's allocations show the hosts"},

	{"Released PromisedEnd Events.Holder Events.Until", slices.Concat(restShows, []string{inNotification}, blazarShows), "Almanac alone needs it"},
	{"Version", slices.Concat(restShows, blazarShows), "only readers of Almanac's notifications need the order of changes"},

	{"Addresses.Network Addresses.Address Addresses.Required", slices.Concat(restTakes, restShows, []string{inNotification}), "floating IPs are requested and shown in Blazar's form only"},
	{"Addresses.Network", []string{inLog, inBlazarChange}, "the network cannot be changed"},
	{"Addresses.Address", slices.Concat([]string{inLog}, blazarShows), "Blazar's form names required addresses; its allocations name the others"},

	{
		"Membership.Min Membership.Max Membership.HypervisorProperties Membership.ResourceProperties Membership.EndAction Membership.Flavor",
		slices.Concat(restTakes, restShows, []string{inNotification}), "only the reservations of leases have it; others have one quantity and one filter",
	},
	{"Membership.EndAction Membership.Flavor", []string{inLog, inBlazarChange}, "it cannot be changed"},
	{"Membership.ServerGroup", slices.Concat(restShows, []string{inNotification}), "only Blazar's clients look for it"},

	{"Kind Policy Image Maintenance Together", []string{inChange, inChangeFlags, inChangeForm}, "a change keeps it; another reservation has another"},
	{"Span.Start", []string{inChangeForm}, "a drag in the calendar changes it"},
	{"Notice", []string{inChangeForm}, "the page does not book movable reservations; the command line fixes one"},
	{"Policy Affinity Image OnEnd BeforeEnd Notice", []string{inForm}, "the form has what most bookings need; the command line has the rest"},

	{"Notice", []string{inAgain}, "the page books the same again at one time, which has no window"},
	{"Window.Start Window.End", blazarShows, "Blazar's form does not know it"},
	{"Policy Image Together Notice", blazarForm, "Blazar's form does not know it"},
	{"Maintenance", []string{inBlazarRequest, inBlazarChange, inBlazarAnswer}, "maintenance is no lease"},
	{"Kind", []string{inBlazarChange}, "the resource type of a reservation cannot be changed"},
	{"OnEnd", []string{inBlazarNotification}, "only microversion 1.1 of Blazar's form has it"},
	{"BeforeEnd", blazarShows, "the event before_end_lease has the time of the warning"},
	{"DelayedByBoot Events.Detail", blazarShows, "Blazar's form does not know it"},

	{"BeforeEnd Created", []string{inPage}, "an event shows it"},
	{"Policy DelayedByBoot", []string{inPage}, "it led to the start, which is shown"},
	{"UserID Updated", []string{inPage}, "the page shows what most owners need; the command line has the rest"},
	{"Degraded", []string{inColumns}, "the column Degraded is degraded_reason"},

	{
		"HostProperties Policy Resources Affinity Together Image OnEnd Notice Window.Start Window.End DelayedByBoot Events.Type Events.Time Events.State Events.Done Events.Detail UserID Membership.LeaseID",
		[]string{inFeed}, "a program for calendars shows what, when and where; the page and the command line have the rest",
	},
	{"Maintenance", []string{inFeed}, "its name is the reason"},
	{"ProjectID", []string{inFeed}, "a feed is of one project"},
	{"Claims.Slices Claims.Span.Start Claims.Span.End", []string{inFeed}, "the names of the hosts are enough"},
	{"Released PromisedEnd Events.Holder Events.Until Membership.ServerGroup", []string{inFeed}, "Almanac alone needs it"},
	{
		"Addresses.Network Addresses.Address Addresses.Required Membership.Min Membership.Max Membership.HypervisorProperties Membership.ResourceProperties " +
			"Membership.EndAction Membership.Flavor", []string{inFeed}, "Blazar's form shows it",
	},
}
