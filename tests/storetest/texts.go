// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// The lengths of texts that Almanac does not get from a request of its own: an id of Keystone, and a host of Nova.
const (
	longestID   = 36
	longestHost = 255
	longestUser = 255 // of a project or a user; Keystone's have 64
	// longestQuery is the length of a filter, or of a query in Blazar's form.
	longestQuery = 16 << 10
	// longestBody is the length of the body of a request for a lease.
	longestBody = 64 << 10
	// longestSentence is the length of what Almanac writes about a reservation.
	longestSentence = 4096
)

// longestTexts has the largest number of characters of each text of a reservation, by its path.
var longestTexts = map[string]int{
	"ID": longestID, "ProjectID": longestUser, "UserID": longestUser, "Name": planning.LongestName, "Image": planning.LongestName, "Together.By": planning.LongestName,
	"Together.ApartFrom": 8*longestID + 7, // ids, with spaces between them
	"HostProperties":     longestQuery, "Membership.HypervisorProperties": longestQuery, "Membership.ResourceProperties": longestQuery,
	"Occurrence.SeriesID": longestID, "Occurrence.Local": len("2006-01-02T15:04:05"),
	"Membership.LeaseID": longestID, "Membership.ServerGroup": longestID, "Membership.EndAction": len(reservation.EndSnapshot),
	"Membership.Flavor": longestQuery, "Claims.Host": longestHost, "Addresses.Network": 64, "Addresses.Address": 45,
	"Degraded": longestSentence, "Events.Detail": longestSentence, "Events.Holder": longestHost,
}

// words has the values of the types that are words.
var words = map[reflect.Type][]string{
	reflect.TypeFor[reservation.Kind]():         textsOf(reservation.Kinds),
	reflect.TypeFor[reservation.Status]():       textsOf(reservation.Statuses),
	reflect.TypeFor[reservation.OnEnd]():        textsOf(reservation.OnEnds),
	reflect.TypeFor[reservation.TogetherRule](): textsOf(reservation.TogetherRules),
	reflect.TypeFor[calendar.Policy]():          textsOf(calendar.Policies),
	reflect.TypeFor[calendar.Affinity]():        textsOf([]calendar.Affinity{calendar.AffinityNone, calendar.AffinitySame, calendar.AffinityDifferent}),
	reflect.TypeFor[reservation.EventState]():   textsOf([]reservation.EventState{reservation.EventDue, reservation.EventRunning, reservation.EventDone}),
	reflect.TypeFor[reservation.EventType](): textsOf([]reservation.EventType{
		reservation.CreatedEvent, reservation.ChangedEvent, reservation.BookedEvent, reservation.ExpireEvent, reservation.StartEvent, reservation.BeforeEndEvent, reservation.EndEvent, reservation.HealedEvent,
		reservation.DegradedEvent, reservation.RestoredEvent, reservation.MovedEvent, reservation.ImageEvent, reservation.CanceledEvent, reservation.FailedEvent,
	}),
}

func textsOf[T ~string](list []T) (texts []string) {
	for _, word := range list {
		texts = append(texts, string(word))
	}
	return texts
}

// eachText calls do with each text below v and its path. Texts in maps are not among them.
func eachText(v reflect.Value, path string, do func(path string, v reflect.Value)) {
	switch {
	case v.Type() == reflect.TypeFor[resource.Vector]():
	case v.Kind() == reflect.Struct:
		for field, inner := range v.Fields() {
			name := path
			if !field.Anonymous || field.Type == reflect.TypeFor[reservation.Membership]() {
				name = strings.TrimPrefix(path+"."+field.Name, ".")
			}
			eachText(inner, name, do)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			eachText(v.Index(i), path, do)
		}
	case v.Kind() == reflect.String:
		do(path, v)
	}
}

// lengthen makes each text of v as long as it may be, in characters of four bytes. bounds has all of them but words.
func lengthen(t *testing.T, v reflect.Value, bounds map[string]int) {
	t.Helper()
	unused := maps.Clone(bounds)
	eachText(v, "", func(path string, v reflect.Value) {
		if list := words[v.Type()]; list != nil {
			v.SetString(slices.MaxFunc(list, func(a, b string) int { return len(a) - len(b) }))
			return
		}
		length, known := bounds[path]
		if !known {
			t.Errorf("how long may %s be? Add it to the bounds, or its type to words", path)
		}
		delete(unused, path)
		v.SetString(strings.Repeat("𝄞", length))
	})
	for path := range unused {
		t.Errorf("the bounds have %s, which is no text", path)
	}
}

func testTexts(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("each text of a reservation may be as long as its bound", func(t *testing.T) {
		s, want := open(t), booked("")
		want.Events, want.Claims, want.Addresses = want.Events[:1], want.Claims[:1], []address.Claim{{}}
		lengthen(t, reflect.ValueOf(&want).Elem(), longestTexts)
		want.Kind = reservation.Addresses // only they have addresses
		mustCreate(t, s, want)
		wantStored(t, s, want)
	})
	t.Run("each text of a lease may be as long as its bound", func(t *testing.T) {
		s, l := open(t), leaseAt("", 0)
		lengthen(t, reflect.ValueOf(&l).Elem(), map[string]int{
			"ID": longestID, "ProjectID": longestUser, "UserID": longestUser, "Name": planning.LongestName, "Events": longestBody,
		})
		mustCommitLease(t, s, l)
		wantLease(t, s, reservation.LeaseRecord{Lease: l})
	})
	t.Run("each text of a series may be as long as its bound, and its lists as well", func(t *testing.T) {
		s, one := open(t), seriesMade("", 100)
		one.Except, one.Also = make([]string, 1000), make([]string, 1000)
		local := len("2006-01-02T15:04:05")
		lengthen(t, reflect.ValueOf(&one).Elem(), map[string]int{
			"ID": longestID, "ProjectID": longestUser, "UserID": longestUser, "Name": planning.LongestName,
			"Rule": 500, "TimeZone": 500, "Start": local, "Except": local, "Also": local,
		})
		r := occurrenceOf(one, "r", 4)
		mustCommitSeries(t, s, one, r)
		wantSeries(t, s, reservation.SeriesRecord{Series: one, Reservations: []reservation.Reservation{r.Reservation}})
	})
}
