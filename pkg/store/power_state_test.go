package store

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// What is added to a type of the domain has to be added to what is stored of it.
func TestEveryFieldOfTheEnergyControllerIsStored(t *testing.T) {
	var record energy.Record
	fill(reflect.ValueOf(&record).Elem())
	stored := throughJSON(t, powerRecordOf(record))
	if d := cmp.Diff(record, stored.record(record.Host)); d != "" {
		t.Errorf("record (-before +after):\n%s", d)
	}
	var settings energy.Settings
	fill(reflect.ValueOf(&settings).Elem())
	storedSettings := throughJSON(t, energySettingsOf(settings))
	if d := cmp.Diff(settings, storedSettings.settings()); d != "" {
		t.Errorf("settings (-before +after):\n%s", d)
	}
	var report energy.Report
	fill(reflect.ValueOf(&report).Elem())
	storedReport := throughJSON(t, energyReportOf(report))
	if d := cmp.Diff(report, storedReport.report()); d != "" {
		t.Errorf("report (-before +after):\n%s", d)
	}
	var entry energy.Entry
	fill(reflect.ValueOf(&entry).Elem())
	row := entryRow(entry, "token")
	row.ID = entry.ID
	if d := cmp.Diff(entry, row.entry()); d != "" {
		t.Errorf("entry (-before +after):\n%s", d)
	}
	var demand energy.Demand
	fill(reflect.ValueOf(&demand).Elem())
	if d := cmp.Diff(demand, rowOfDemand(demand).demand()); d != "" {
		t.Errorf("demand (-before +after):\n%s", d)
	}
}

// fill sets whatever can be set to something that is not its zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("ä")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1.1)
	default:
		v.SetInt(1<<31 - 1) // an Idle counts as much on every machine
	}
}

func throughJSON[T any](t *testing.T, value T) (read T) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// What is stored outlives this version: a field of it keeps its name.
func TestTheFormOfAStoredPowerRecordStays(t *testing.T) {
	text, err := json.Marshal(powerRecordOf(energy.Record{
		Host: "a", Phase: energy.Waking, Since: 7, Reason: "needed", Target: energy.On, Operation: "op", Urgent: true,
		Testing: true, Closed: 16, Reported: 17, Begun: 18, OffFailed: 4,
		Order:  &energy.Order{ID: "o", Epoch: 2, Number: 3, Host: "a", State: energy.On, Hard: true, Patience: 4, Deadline: 5},
		Number: 3, Attempt: 1, RetryAt: 8, Oddly: 2, Heard: 19, LastOn: 9, LastOff: 10, Boots: []int64{180}, Switches: []span.Instant{11},
		Hold:  &energy.Hold{Action: energy.HoldOff, Reason: "r", By: "u", At: 12, Until: 13},
		Proof: &energy.Proof{At: 14, Woke: true, Seconds: 15, Reason: "w"}, Quarantine: "q", Mode: energy.ModeAuto,
	}))
	const want = `{"phase":"waking","since":7,"reason":"needed","target":"on","operation":"op","urgent":true,"testing":true,"closed":16,"reported":17,"begun":18,` +
		`"order":{"id":"o","epoch":2,"number":3,"host":"a","state":"on","hard":true,"patience":4,"deadline":5},"number":3,"attempt":1,"off_failed":4,` +
		`"retry_at":8,"oddly":2,"heard":19,"last_on":9,"last_off":10,"boots":[180],"switches":[11],"hold":{"action":"off","reason":"r","by":"u","at":12,"until":13},` +
		`"proof":{"at":14,"woke":true,"seconds":15,"reason":"w"},"quarantine":"q","mode":"auto"}`
	if err != nil || string(text) != want {
		t.Errorf("got  %s (%v)\nwant %s", text, err, want)
	}
}
