// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"net/http"
	"os"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/api/leases"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

func TestTheDocumentIsValidAndSoAreItsExamples(t *testing.T) {
	for _, file := range documents {
		document, err := openapi3.NewLoader().LoadFromFile(file)
		must(t, err)
		if err := document.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaPatternValidation()); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// openapi-typescript 7.9 turns anyOf, oneOf and allOf beside properties into a type that takes every field, so that a
// misspelled one compiles.
func TestATypeGeneratedFromTheDocumentRefusesFieldsThatItDoesNotKnow(t *testing.T) {
	for _, file := range documents {
		document, err := openapi3.NewLoader().LoadFromFile(file)
		must(t, err)
		for name, s := range document.Components.Schemas {
			if v := s.Value; len(v.Properties) > 0 && len(v.AnyOf)+len(v.OneOf)+len(v.AllOf) > 0 {
				t.Errorf("%s: %s has properties and alternatives", file, name)
			}
		}
	}
}

func TestTheDocumentListsTheRoutesOfTheServer(t *testing.T) {
	var served []string
	for _, r := range api.Calls(api.Options{Blazar: &leases.Options{}, Demo: demoCloud{}}) {
		served = append(served, r.Method+" "+asDocumented(r.Path))
	}
	listed := openContract(t).routes()
	slices.Sort(served)
	slices.Sort(listed)
	if diff := cmp.Diff(served, listed); diff != "" {
		t.Errorf("served and listed differ (-served +listed):\n%s", diff)
	}
}

func TestTheDocumentIsServedAsItIs(t *testing.T) {
	c := start(t, setup{})
	for _, file := range documents {
		raw, err := os.ReadFile(file)
		must(t, err)
		a := c.nobody.get("/v1/" + file)
		if a.status != http.StatusOK || string(a.body) != string(raw) {
			t.Errorf("got %d and %d bytes, want the %d of %s", a.status, len(a.body), len(raw), file)
		}
	}
}

func TestTheDocumentHasTheWordsOfTheDomain(t *testing.T) {
	schemas := openContract(t).document.Components.Schemas
	event := schemas["Event"].Value.Properties
	refusal := schemas["Refusal"].Value.Properties
	failure := schemas["ErrorAnswer"].Value.Properties["error"].Value.Properties
	for name, words := range map[string]struct{ listed, known []any }{
		"kinds":        {schemas["Kind"].Value.Enum, anyOf(reservation.Kinds...)},
		"power states": {schemas["Host"].Value.Properties["power"].Value.Enum, anyOf(inventory.Powers...)},
		"modes":        {schemas["EnergyMode"].Value.Enum, anyOf(energy.Modes...)},
		"actions":      {schemas["EnergyOrder"].Value.Properties["action"].Value.Enum, anyOf(energy.HoldOn, energy.HoldOff, energy.HoldStandby, energy.Release, energy.Test)},
		"entries": {schemas["EnergyEntry"].Value.Properties["kind"].Value.Enum, anyOf(energy.EntryPhase, energy.EntryOrder, energy.EntryOutcome,
			energy.EntryAborted, energy.EntryFound, energy.EntryAlarm, energy.EntryManual, energy.EntrySetting)},
		"alarms":       {schemas["EnergyAlarm"].Value.Properties["kind"].Value.Enum, anyOf(energy.AlarmKinds...)},
		"statuses":     {schemas["Status"].Value.Enum, anyOf(reservation.Statuses...)},
		"policies":     {schemas["Policy"].Value.Enum, anyOf(calendar.Policies...)},
		"on_end":       {schemas["Reservation"].Value.Properties["on_end"].Value.Enum, anyOf(reservation.OnEnds...)},
		"event states": {event["state"].Value.Enum, anyOf(reservation.EventDue, reservation.EventRunning, reservation.EventDone)},
		"event types": {event["type"].Value.Enum, anyOf(reservation.CreatedEvent, reservation.ChangedEvent, reservation.BookedEvent, reservation.ExpireEvent,
			reservation.StartEvent, reservation.BeforeEndEvent, reservation.EndEvent, reservation.HealedEvent,
			reservation.DegradedEvent, reservation.RestoredEvent, reservation.MovedEvent, reservation.ImageEvent, reservation.CanceledEvent, reservation.FailedEvent)},
		"constraints": {refusal["constraint"].Value.Enum, anyOf(reservation.HostsInPool, reservation.HostsMatching,
			reservation.HostsFree, reservation.HostsTogether, reservation.ImageTransfer, reservation.ImagePool, reservation.FloatingIPsFree, reservation.MaxDuration, reservation.MaxStartAhead, reservation.MaxHosts,
			reservation.MaxHostHours, reservation.MaxHolds, reservation.ExtensionTooEarly)},
		"faults": {failure["kind"].Value.Enum, anyOf(fault.Invalid, fault.Unauthorized, fault.Denied, fault.NotFound,
			fault.Refused, fault.Conflict, fault.Precondition, fault.TooLarge, fault.Unprocessable, fault.TooMany, fault.Internal, fault.Unavailable)},
	} {
		if diff := cmp.Diff(words.known, words.listed); diff != "" {
			t.Errorf("%s (-known +listed):\n%s", name, diff)
		}
	}
}

func anyOf[T ~string](words ...T) []any {
	list := make([]any, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return list
}
