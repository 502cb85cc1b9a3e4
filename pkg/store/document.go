// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"sync"
)

// encode returns a document as JSON. Infinite numbers become the largest number of JSON, and NaN
// becomes 0.
func encode(document any) ([]byte, error) {
	text, err := json.Marshal(document)
	if _, unsupported := errors.AsType[*json.UnsupportedValueError](err); unsupported {
		return json.Marshal(finite(reflect.ValueOf(document)).Interface())
	}
	return text, err
}

// finite returns a copy of v in which every number is finite.
func finite(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Float64:
		if x := v.Float(); math.IsNaN(x) {
			out.SetFloat(0)
		} else {
			out.SetFloat(min(max(x, -math.MaxFloat64), math.MaxFloat64))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(finite(v.Field(i)))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(finite(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		}
		for i := range v.Len() {
			out.Index(i).Set(finite(v.Index(i)))
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMap(v.Type()))
		}
		for key, value := range v.Seq2() {
			out.SetMapIndex(key, finite(value))
		}
	}
	return out
}

// packers is a pool of gzip writers. A writer has more than a megabyte.
var packers = sync.Pool{New: func() any {
	pack, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails for an unknown level only
	return pack
}}

// compressed returns text as gzip.
func compressed(text []byte) ([]byte, error) {
	pack := packers.Get().(*gzip.Writer)
	defer packers.Put(pack)
	var out bytes.Buffer
	pack.Reset(&out)
	if _, err := pack.Write(text); err != nil {
		return nil, err
	}
	if err := pack.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// decompress decodes JSON in gzip into document.
func decompress(stored []byte, document any) error {
	text, err := gzip.NewReader(bytes.NewReader(stored))
	if err != nil {
		return err
	}
	return json.NewDecoder(text).Decode(document)
}

// fitting returns text, cut to at most that many characters.
func fitting(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

func converted[A, B any](list []A, convert func(A) B) []B {
	var out []B
	for _, element := range list {
		out = append(out, convert(element))
	}
	return out
}
