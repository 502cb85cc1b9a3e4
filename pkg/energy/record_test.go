package energy

import (
	"reflect"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/span"
)

func TestRecordsAreTheSameOnlyWhereEachFieldIs(t *testing.T) {
	full := Record{Boots: []int64{1}, Switches: []span.Instant{1}, Order: &Order{ID: "a"}, Hold: &Hold{By: "b"}, Proof: &Proof{At: 1}}
	copied := Record{Boots: []int64{1}, Switches: []span.Instant{1}, Order: &Order{ID: "a"}, Hold: &Hold{By: "b"}, Proof: &Proof{At: 1}}
	if !full.same(&copied) || !full.same(&full) {
		t.Error("a record is not the same as its copy")
	}
	for i := range reflect.TypeFor[Record]().NumField() {
		for _, before := range []Record{{}, full} {
			after := before
			alter(t, reflect.ValueOf(&after).Elem().Field(i))
			if name := reflect.TypeFor[Record]().Field(i).Name; after.same(&before) || before.same(&after) {
				t.Errorf("another %s is not seen", name)
			}
		}
	}
}

// alter gives a field another value.
func alter(t *testing.T, field reflect.Value) {
	switch field.Kind() {
	case reflect.String:
		field.SetString(field.String() + "x")
	case reflect.Bool:
		field.SetBool(!field.Bool())
	case reflect.Int, reflect.Int64:
		field.SetInt(field.Int() + 1)
	case reflect.Float64:
		field.SetFloat(field.Float() + 1)
	case reflect.Struct:
		alter(t, field.Field(0))
	case reflect.Slice:
		field.Set(reflect.Append(field, reflect.Zero(field.Type().Elem())))
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
	default:
		t.Fatalf("a field of kind %s cannot be altered here", field.Kind())
	}
}

func TestTheBootTimeIsThe95thPercentileOfAnyNumberOfBoots(t *testing.T) {
	var r Record
	if got := r.BootSeconds(7); got != 7 {
		t.Errorf("%d without a boot, want 7", got)
	}
	for n := 1; n <= 100; n++ { // more than are remembered, as another version may have
		r.Boots = append(r.Boots, int64(101-n))
	}
	if got := r.BootSeconds(7); got != 95 || r.Boots[0] != 100 {
		t.Errorf("%d of 1 to 100, want 95; the boots begin with %d", got, r.Boots[0])
	}
}
