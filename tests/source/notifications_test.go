// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
	"github.com/almanac-cloud/almanac/reservation/notice"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// silent names the actions without a notification in a format, and why.
var silent = map[string]map[reservation.Action]string{
	notice.Almanac: {
		reservation.ActionBeginEvent: "the event has not happened yet",
		reservation.ActionPutOff:     "the event has not happened yet",
	},
	notice.Blazar: {
		reservation.ActionBeginEvent: "the event has not happened yet",
		reservation.ActionPutOff:     "the event has not happened yet",
		reservation.ActionRemark:     "Blazar's leases have no images",
	},
}

func TestEachActionIsNotifiedOrItsSilenceHasAReason(t *testing.T) {
	actions := constants(t, "reservation/ports.go", "Action")
	for format, reasons := range silent {
		for _, action := range actions {
			sent := changeSent(t, reservation.Action(action), examples()[0], format)
			why := reasons[reservation.Action(action)]
			switch {
			case len(sent) == 0 && why == "":
				t.Errorf("the action %s has no notification in the format %s: add a row to its table in reservation/notice, or a reason to silent", action, format)
			case len(sent) > 0 && why != "":
				t.Errorf("the action %s has a notification in the format %s, but silent states that it has none: %s", action, format, why)
			}
		}
		for action := range reasons {
			if !slices.Contains(actions, string(action)) {
				t.Errorf("silent names the action %s, which does not exist", action)
			}
		}
	}
}

func TestTheGuideHasEachNotification(t *testing.T) {
	_, table, _ := strings.Cut(repository.Read(t, repository.OperationsPage), "\n| `[oslo_messaging_notifications] formats` |")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for _, types := range repository.Matches("(?m)^\\| [^|]+ \\| ([^|]+) \\|", table) {
		for _, group := range repository.Matches("`([a-z_. ]+)`", types) {
			listed = append(listed, expanded(group)...)
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(notifications(t))), listed); diff != "" {
		t.Errorf("event types (-sent +table of %s):\n%s", repository.OperationsPage, diff)
	}
}

// expanded returns the event types of a text such as "lease.create update delete".
func expanded(text string) []string {
	words := strings.Fields(text)
	prefix := words[0][:strings.LastIndex(words[0], ".")+1]
	for i := range words[1:] {
		words[i+1] = prefix + words[i+1]
	}
	return words
}

// alerts names the alert that fires when operators must act on a notification. All others need nobody to act.
var alerts = map[string]string{
	"reservation.degrade":         "AlmanacReservationsDegraded",
	"reservation.start":           "AlmanacEventsLate", // with priority error: it failed until its end
	"reservation.end":             "AlmanacEventsLate",
	"energy.alarm.begin":          "AlmanacEnergyAlarm",
	"energy.host.power_off.error": "AlmanacEnergyAlarm",
	"energy.host.power_on.error":  "AlmanacEnergyAlarm",
}

// calm are the event types that need no operator to act.
var calm = strings.Fields(`
	reservation.create reservation.change reservation.cancel reservation.before_end reservation.heal reservation.restore reservation.move reservation.book reservation.expire reservation.image
	reservation.evict preemptible.evict energy.alarm.end
	energy.host.power_off.start energy.host.power_off.end energy.host.power_on.start energy.host.power_on.end
	lease.create lease.update lease.delete lease.event.start_lease lease.event.before_end_lease lease.event.before_end_lease.stop lease.event.end_lease`)

func TestEachNotificationHasAnAlertOrNeedsNobodyToAct(t *testing.T) {
	judged := slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(alerts)), calm...)))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(notifications(t))), judged); diff != "" {
		t.Errorf("event types (-sent +in alerts or calm):\n%s", diff)
	}
	exist := repository.Matches(`(?m)- alert: (\w+)$`, repository.Read(t, repository.AlertsPath))
	for eventType, alert := range alerts {
		if !slices.Contains(exist, alert) {
			t.Errorf("%s needs the alert %s, which does not exist", eventType, alert)
		}
	}
}

// forms are the version and the keys of each payload in Almanac's format, by the beginning of the event type. A new
// key raises the second number of its version, and the removal of one the first.
var forms = []struct{ prefix, version, keys string }{
	{"reservation.evict", "1.0", "action evicted_at evicted_for host instance_id instance_name project_id reservation_id user_id version"},
	{"preemptible.evict", "1.0", "action evicted_at evicted_for host instance_id instance_name project_id user_id version"},
	{"energy.host.", "1.0", "at host kind operation reason since urgent version"},
	{"energy.alarm.", "1.0", "at host kind reason since version"},
	{"reservation.", "1.7", "affinity before_end claims.end claims.host claims.instances claims.start created_at degraded degraded_reason delayed_by_boot detail end " +
		"events.detail events.done_at events.state events.time events.type held_until host_properties hosts id image kind lease_id maintenance name notice occurrence on_end policy project_id " +
		"quantity request_id reservation_version resources series_id start status together updated_at user_id version window_end window_start"},
}

func TestThePayloadOfAVersionKeepsItsKeys(t *testing.T) {
	for eventType, n := range notifications(t) {
		if strings.HasPrefix(eventType, "lease.") {
			continue // Blazar's payloads have no version
		}
		i := slices.IndexFunc(forms, func(f struct{ prefix, version, keys string }) bool { return strings.HasPrefix(eventType, f.prefix) })
		if i < 0 {
			t.Errorf("forms has no row for %s", eventType)
			continue
		}
		payload := asJSON(t, n.Payload).(map[string]any)
		if payload["version"] != forms[i].version {
			t.Errorf("%s has version %v, want %s", eventType, payload["version"], forms[i].version)
		}
		keys := map[string]bool{}
		compare(payload, map[string]any{}, "", keys)
		for _, list := range []string{"claims", "events"} {
			if !keys[list] {
				continue
			}
			delete(keys, list)
			for _, one := range payload[list].([]any) {
				compare(one, map[string]any{}, list, keys)
			}
		}
		if diff := cmp.Diff(strings.Fields(forms[i].keys), slices.Sorted(maps.Keys(keys))); diff != "" {
			t.Errorf("%s has other keys than version %s (-forms +sent); raise the version in reservation/notice, then add them to forms:\n%s", eventType, forms[i].version, diff)
		}
	}
}

// once are the events that a reservation has at most a few times in its life; the log keeps all of them. Of all others
// it keeps the last ones only (reservation/planning/history.go).
var once = []reservation.EventType{reservation.CreatedEvent, reservation.BookedEvent, reservation.ExpireEvent, reservation.StartEvent, reservation.EndEvent, reservation.CanceledEvent, reservation.FailedEvent}

func TestEachEventHasItsWordsAndItsBound(t *testing.T) {
	events := constants(t, "reservation/reservation.go", "EventType")
	sorted := slices.Sorted(slices.Values(events))
	if diff := cmp.Diff(sorted, repository.Matches(`(?m)^  event_(\w+):`, repository.Read(t, "../../pkg/dashboard/page/texts-reservation.js"))); diff != "" {
		t.Errorf("events (-code +words of the page):\n%s", diff)
	}
	document, err := openapi3.NewLoader().LoadFromFile("../../pkg/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, word := range document.Components.Schemas["Event"].Value.Properties["type"].Value.Enum {
		listed = append(listed, word.(string))
	}
	slices.Sort(listed)
	if diff := cmp.Diff(sorted, listed); diff != "" {
		t.Errorf("events (-code +openapi.yaml):\n%s", diff)
	}
	guide := strings.Fields(strings.Join(repository.Matches("An event has a `type`, one of `([a-z_ ]+)`", repository.Read(t, "../../docs/api.md")), ""))
	slices.Sort(guide)
	if diff := cmp.Diff(sorted, guide); diff != "" {
		t.Errorf("events (-code +docs/api.md):\n%s", diff)
	}
	concepts := repository.Read(t, "../../docs/concepts.md")
	_, log, _ := strings.Cut(concepts, "has its own log in `events`.")
	due, log, _ := strings.Cut(log, " due at a time;")
	entered, _, _ := strings.Cut(log, " entered as they happen.")
	_, healing, _ := strings.Cut(concepts, "\n| event | meaning |\n")
	healing, _, _ = strings.Cut(healing, "\n\n")
	listed = append(repository.Matches("`(\\w+)`", due+entered), repository.Matches("(?m)^\\| `(\\w+)` \\|", healing)...)
	slices.Sort(listed)
	if diff := cmp.Diff(sorted, listed); diff != "" {
		t.Errorf("events (-code +docs/concepts.md):\n%s", diff)
	}
	for _, event := range events {
		if carried := lifecycle.Action(reservation.EventType(event)) != ""; carried != strings.Contains(due, "`"+event+"`") {
			t.Errorf("the event %s is carried out: %v; docs/concepts.md lists it among the others", event, carried)
		}
	}
	names := slices.Sorted(maps.Values(constantNames(t, "reservation/reservation.go", "EventType")))
	if diff := cmp.Diff(names, repository.Matches(`\breservation\.(\w+Event)\b`, repository.Read(t, "../../tests/storetest/texts.go"))); diff != "" {
		t.Errorf("events (-code +tests/storetest/texts.go, which stores each):\n%s", diff)
	}
	bounded := repository.Matches(`reservation\.(\w+Event)\b`, repository.Read(t, "../../reservation/planning/history.go"))
	for event, name := range constantNames(t, "reservation/reservation.go", "EventType") {
		if slices.Contains(bounded, name) == slices.Contains(once, reservation.EventType(event)) {
			t.Errorf("the event %s is to be either in bounded of reservation/planning/history.go, or in once of this test", event)
		}
	}
}

// The calls that enter an event into the log of a reservation, and those of healing that also name the action.
var entering = []string{"Happened", "happened", "due", "note"}

// An action that nothing causes, or an event that nothing enters, is promised by the guide and the contract, and never comes.
func TestEachActionIsCausedAndEachEventIsEntered(t *testing.T) {
	made := map[string]bool{}
	note := func(list ...ast.Expr) {
		for _, e := range list {
			made[lastName(e)] = true
		}
	}
	for _, files := range productionFiles(t) {
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if slices.Contains(entering, lastName(n.Fun)) {
						note(n.Args...)
					}
				case *ast.AssignStmt:
					if len(n.Lhs) == len(n.Rhs) {
						for i, to := range n.Lhs {
							if lastName(to) == "Action" {
								note(n.Rhs[i])
							}
						}
					}
				case *ast.CompositeLit:
					if lastName(n.Type) == "Cause" {
						for _, e := range n.Elts {
							if pair, is := e.(*ast.KeyValueExpr); is && lastName(pair.Key) == "Action" {
								note(pair.Value)
							}
						}
					}
				}
				return true
			})
		}
	}
	actions := constantNames(t, "reservation/ports.go", "Action")
	for event, name := range constantNames(t, "reservation/reservation.go", "EventType") {
		if !made[name] {
			t.Errorf("nothing enters the event %s: call planning.Happened where it is decided, or remove it", event)
		}
		delete(actions, string(lifecycle.Action(reservation.EventType(event)))) // the events that are due are carried out by their table
	}
	for action, name := range actions {
		if !made[name] {
			t.Errorf("nothing causes the action %s: it needs a reservation.Cause where it is decided", action)
		}
	}
}

// notifications returns one notification of each event type that Almanac sends.
func notifications(t *testing.T) map[string]oslo.Notification {
	t.Helper()
	full := examples()[1] // of hosts, in a lease
	visit(t, reflect.ValueOf(&full).Elem(), "", func(string, reflect.Value) {})
	full.Degraded, full.Claims[0].Slices = "node-1 is away", 2
	full.Kind, full.Together = reservation.Instances, reservation.Together{By: "rack", Rule: reservation.TogetherSpread, Values: 2}
	full.Events[0].Detail = "began"
	full.Occurrence = reservation.Occurrence{SeriesID: "s", Local: "2026-12-01T09:00:00"}
	full.Events = append(full.Events, reservation.Event{Type: reservation.ExpireEvent, State: reservation.EventDue, Time: full.Span.Start})
	warned := full
	warned.Events = append(slices.Clone(full.Events), full.Events[1])
	warned.Events[1].State, warned.Events[1].Done = reservation.EventDone, full.Span.Start
	sent := map[string]oslo.Notification{}
	for format := range silent {
		for _, action := range constants(t, "reservation/ports.go", "Action") {
			for _, r := range []reservation.Reservation{full, warned} {
				for _, n := range changeSent(t, reservation.Action(action), r, format) {
					sent[n.EventType] = n
				}
			}
		}
	}
	var out sentAll
	n, err := notice.New(notice.Options{Sender: &out, Host: "h"})
	if err != nil {
		t.Fatal(err)
	}
	send := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	at := time.Unix(int64(full.Created), 0)
	send(n.Evict(t.Context(), notice.Eviction{Instance: "i", RequestID: "r", At: at, Told: at}))
	send(n.Evict(t.Context(), notice.Eviction{Instance: "i", RequestID: "r", Reservation: full.ID, At: at, Told: at}))
	for _, to := range []energy.State{energy.On, energy.Off, energy.Standby} {
		for _, moment := range constants(t, "reservation/notice/power.go", "Moment") {
			send(n.Power(t.Context(), notice.Power{Host: "a", To: to, Moment: notice.Moment(moment), Since: at, At: at}))
		}
	}
	send(n.Alarm(t.Context(), notice.Alarm{At: at}))
	send(n.Alarm(t.Context(), notice.Alarm{At: at, Over: true}))
	for _, one := range out {
		sent[one.EventType] = one
	}
	return sent
}

// changeSent returns the notifications of a change in a format.
func changeSent(t *testing.T, action reservation.Action, r reservation.Reservation, format string) []oslo.Notification {
	t.Helper()
	var out sentAll
	n, err := notice.New(notice.Options{Sender: &out, Host: "h", Formats: []string{format}})
	if err == nil {
		err = n.Notify(t.Context(), reservation.Change{At: r.Created, Cause: reservation.Cause{Action: action}, Reservation: r})
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// constants returns the values of the constants of a type of texts in a file.
func constants(t *testing.T, path, of string) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(constantNames(t, path, of)))
}

// constantNames returns the names of these constants by their values.
func constantNames(t *testing.T, path, of string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../"+path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if kind, is := spec.Type.(*ast.Ident); !is || kind.Name != of {
			return true
		}
		for i, name := range spec.Names {
			if value, is := spec.Values[i].(*ast.BasicLit); is {
				text, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				names[text] = name.Name
			}
		}
		return true
	})
	if len(names) == 0 {
		t.Fatalf("%s has no constants of type %s", path, of)
	}
	return names
}
