// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/strictjson"
)

// The largest bodies, in bytes. Those of the calls that members make are small, so that reading one is
// cheap. All other calls come from admins and services: AnyBody leaves Options.MaxBodyBytes as their limit.
const (
	ReservationBody = 64 << 10  // its largest part is a filter, 16 KiB
	BestEffortBody  = 256 << 10 // user_data of 64 KiB, and metadata
	AnyBody         = math.MaxInt64
)

// Body reads the request's body, a JSON object of at most `most` bytes, into the struct to which
// target points, and also returns it raw. Every mistake is a fault that names the field: an unknown
// field, or one of the wrong type. null means absent, except for a v1.Power and a v1.EnergyMode.
func (c *Call) Body(target any, most int64) ([]byte, error) {
	raw, err := c.RawBody(most)
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	err = json.Unmarshal(raw, &object)
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); other || err == nil && object == nil {
		return nil, fault.New(fault.Invalid, "the body must be a JSON object, not %s", Shorten(bytes.TrimSpace(raw)))
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "the body is not JSON: %v", err)
	}
	return raw, strictjson.Fields(object, reflect.ValueOf(target).Elem(), "", field)
}

// RawBody returns the request's body, which must be UTF-8 and have at most `most` bytes.
func (c *Call) RawBody(most int64) ([]byte, error) {
	most = min(most, c.server.MaxBodyBytes)
	raw, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, most))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, fault.New(fault.TooLarge, "the body has more than %d bytes", most)
		}
		return nil, &fault.Error{Kind: fault.Invalid, Message: "the body could not be read", Err: err}
	}
	if !utf8.Valid(raw) {
		return nil, fault.New(fault.Invalid, "the body is not UTF-8")
	}
	return raw, nil
}

// field reads a field of a body into its place; it is a strictjson.Reader.
func field(raw json.RawMessage, place reflect.Value, name string) error {
	if strictjson.IsNull(raw) {
		if t := place.Type(); t == reflect.TypeFor[*v1.Power]() || t == reflect.TypeFor[*v1.EnergyMode]() {
			place.Set(reflect.New(t.Elem()))
		}
		return nil
	}
	if t := place.Type(); t == reflect.TypeFor[*v1.Resources]() || t == reflect.TypeFor[*v1.TogetherWish]() {
		place.Set(reflect.New(place.Type().Elem()))
		place = place.Elem()
	}
	if t := place.Type(); t.Kind() == reflect.Slice && isObject(t.Elem()) {
		return elements(raw, place, name)
	}
	if t := place.Type(); t.Kind() == reflect.Pointer && isObject(t.Elem()) && raw[0] == '{' { // another form is one value for both ends
		place.Set(reflect.New(t.Elem()))
		place = place.Elem()
	}
	if t := place.Type(); isObject(t) {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(raw, &object); err != nil {
			return fault.Field(name, "must be an object, not %s", Shorten(raw))
		}
		return strictjson.Fields(object, place, name, field)
	}
	if err := read(raw, place); err != nil {
		return fault.Field(name, "%s", wrong(raw, place.Type(), err))
	}
	return nil
}

// isObject reports whether a type is a struct whose fields are read one by one.
func isObject(t reflect.Type) bool {
	return slices.Contains([]reflect.Type{
		reflect.TypeFor[v1.Resources](), reflect.TypeFor[v1.PlacementRequest](), reflect.TypeFor[v1.WeighRequest](),
		reflect.TypeFor[v1.OfferWindow](), reflect.TypeFor[v1.OfferAlternative](), reflect.TypeFor[v1.GroupPart](),
		reflect.TypeFor[v1.QuantityRange](), reflect.TypeFor[v1.DurationRange](), reflect.TypeFor[v1.TogetherWish](),
	}, t)
}

// mostObjects is the largest number of entries in a list of objects. The lists have smaller limits of their own.
const mostObjects = 16

// elements reads a list of objects.
func elements(raw json.RawMessage, place reflect.Value, name string) error {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return fault.Field(name, "must be a list of objects, not %s", Shorten(raw))
	}
	if len(list) > mostObjects {
		return fault.Field(name, "has %d entries, more than any list of objects may have, %d", len(list), mostObjects)
	}
	place.Set(reflect.MakeSlice(place.Type(), len(list), len(list)))
	for i, one := range list {
		if err := field(one, place.Index(i), fmt.Sprintf("%s[%d]", name, i)); err != nil {
			return err
		}
	}
	return nil
}

// read sets a field of a type that is no struct of fields. Whole numbers may have a fraction of zero,
// as Python writes them, and times are those of span.ParseTime.
func read(raw json.RawMessage, place reflect.Value) error {
	t := place.Type()
	switch pointed := t.Kind() == reflect.Pointer; {
	case t == reflect.TypeFor[*time.Time]():
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		at, err := span.ParseTime(text)
		place.Set(reflect.ValueOf(&at))
		return err
	case t == reflect.TypeFor[map[string]int64]():
		var amounts map[string]json.RawMessage
		if err := json.Unmarshal(raw, &amounts); err != nil {
			return err
		}
		place.Set(reflect.ValueOf(make(map[string]int64, len(amounts))))
		for name, raw := range amounts {
			amount := reflect.New(t.Elem()).Elem()
			if err := read(raw, amount); err != nil {
				return err
			}
			place.SetMapIndex(reflect.ValueOf(name), amount)
		}
		return nil
	case t == reflect.TypeFor[map[string]any](): // properties, whose numbers may be too large for a float64
		if err := json.Unmarshal(raw, new(map[string]any)); err != nil {
			return err
		}
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		return decoder.Decode(place.Addr().Interface())
	case strictjson.IsWhole(t), pointed && strictjson.IsWhole(t.Elem()):
		raw = json.RawMessage(resource.Whole(string(raw)))
	}
	return json.Unmarshal(raw, place.Addr().Interface())
}

// wrong returns a sentence that describes the expected type of a value.
func wrong(raw json.RawMessage, t reflect.Type, err error) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	want := strictjson.Article(t)
	switch {
	case t == reflect.TypeFor[time.Time]():
		want = "a time with its zone, such as 2026-12-01T10:00:00Z"
	case t == reflect.TypeFor[v1.Duration]() || t == reflect.TypeFor[v1.Until]() || t == reflect.TypeFor[v1.Hints]() || t == reflect.TypeFor[v1.Networks](),
		t == reflect.TypeFor[v1.QuantityRange](), t == reflect.TypeFor[v1.DurationRange]():
		return err.Error()
	case want != "":
	case t.Kind() == reflect.Slice:
		want = "a list of strings"
	case t == reflect.TypeFor[map[string]int64]():
		want = "an object of whole numbers"
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.String:
		want = "an object of strings"
	default:
		want = "an object"
	}
	return fmt.Sprintf("must be %s, not %s", want, Shorten(raw))
}

// Shorten returns a value, cut to a length that fits into a message.
func Shorten(raw []byte) string {
	const most = 60
	if text := []rune(string(raw)); len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(raw)
}
