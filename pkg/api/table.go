// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/api/calendar"
	"github.com/almanac-cloud/almanac/pkg/api/events"
	"github.com/almanac-cloud/almanac/pkg/api/hosts"
	"github.com/almanac-cloud/almanac/pkg/api/instances"
	"github.com/almanac-cloud/almanac/pkg/api/leases"
	"github.com/almanac-cloud/almanac/pkg/api/page"
	"github.com/almanac-cloud/almanac/pkg/api/reservations"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/api/webhooks"
)

// parts are what serves calls and works beside them too.
type parts struct {
	events  *events.API
	health  *health
	scrapes *scrapes
}

// table returns the table of routes: everything that the service answers, and nothing else.
func (p parts) table(o Options) []serving.Route {
	service := service{health: p.health, scrapes: p.scrapes, version: o.Version, simulated: o.Demo != nil, speed: o.Speed}
	return slices.Concat(
		service.routes(),
		doctor{o.Doctor, o.RequestTimeout}.routes(),
		pageOf(o).Routes(),
		reservationsOf(o).Routes(),
		calendarOf(o).Routes(),
		p.events.Routes(),
		webhooksOf(o).Routes(),
		hosts.API{Inventory: o.Inventory}.Routes(),
		imagesOf(o).Routes(),
		energyOf(o).Routes(),
		instances.Scheduler{Admission: o.Admission, Weighers: o.Weighers, Now: o.Now}.Routes(),
		instances.Decisions{Log: o.Decisions}.Routes(),
		instances.Preemptible{Placing: o.Placing, Rule: o.Admission.Rule, Snapshot: o.Inventory.Snapshot, Now: o.Now}.Routes(),
		o.Packing.Routes(),
		instances.BestEffort{Queue: o.BestEffort, Now: o.Now, Log: o.Log}.Routes(),
		instances.Demo{Cloud: o.Demo}.Routes(),
		leasesOf(o),
	)
}

func pageOf(o Options) page.API {
	return page.API{Files: o.Dashboard, SignIn: o.SignIn, Version: o.Version, Simulated: o.Demo != nil, Speed: o.Speed, Feeds: o.FeedSecret != "", Ends: o.Booking, Log: o.Log}
}

func reservationsOf(o Options) reservations.API {
	return reservations.API{
		Booker: o.Booking, Changer: o.Booking, Asked: o.Booking, Groups: o.Booking, Recurring: o.Booking, Line: o.Booking, SeriesReader: o.Series, Reader: o.Reader, Leases: o.Leases, Snapshot: o.Inventory.Snapshot,
		Instances: o.Instances, Images: o.Images, BeforeEnd: o.BeforeEnd, Now: o.Now, NewID: o.NewID,
	}
}

func calendarOf(o Options) *calendar.API {
	return calendar.New(calendar.Options{
		Live: o.Booking, Turns: o.Booking, Reader: o.Reader, History: o.History, Snapshot: o.Inventory.Snapshot,
		Power: o.Energy, FeedSecret: o.FeedSecret, Now: o.Now,
	})
}

func webhooksOf(o Options) webhooks.API {
	w := o.Webhooks
	w.NewID, w.Now = o.NewID, o.Now
	return w
}

func imagesOf(o Options) hosts.Images {
	if o.Images == nil {
		return hosts.Images{}
	}
	return hosts.Images{Overview: o.Images.Overview}
}

func energyOf(o Options) hosts.Energy {
	return hosts.Energy{Control: o.Energy, Hosts: o.Energy, Orders: o.Energy, History: o.Energy, Snapshot: o.Inventory.Snapshot, Now: o.Now}
}

// leasesOf returns the calls that have Blazar's form, unless they are switched off.
func leasesOf(o Options) []serving.Route {
	if o.Blazar == nil {
		return nil
	}
	return leases.API{
		Options: *o.Blazar, Booker: o.Booking, Changer: o.Booking, Live: o.Booking, Reader: o.Reader, Leases: o.Leases, Hosts: o.Inventory,
		Now: o.Now, Log: o.Log, NewID: o.NewID,
	}.Routes()
}

// Call is a row of the table of routes, for those who check it or draw from it.
type Call struct {
	Method, Path, Caller, Turn string
	Rules                      []string // of the policy
	Largest                    int64    // bytes of an answer
	CacheControl               string
	Vary                       []string
	Tag                        bool // see serving.Cache
	Whole                      bool // no column is empty
}

// Calls returns the table of routes of a service with these options.
func Calls(o Options) (calls []Call) {
	for _, r := range (parts{events: &events.API{}, health: &health{}, scrapes: &scrapes{}}).table(o) {
		calls = append(calls, Call{
			r.Method, r.Path, r.Who.Caller, string(r.Turn), r.Who.Rules, int64(r.Largest), r.Keeps.Control, r.Keeps.Vary, r.Keeps.Tag, r.Whole(),
		})
	}
	return calls
}
