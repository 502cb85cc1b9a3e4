// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Object is a JSON object of a request. Numbers are json.Number. Keys that nobody reads are
// ignored, as Blazar does, and null means the same as an absent key unless a call states otherwise.
type Object map[string]any

// ReadObject returns the body of a request, which must be one JSON object. Errors are Invalid
// faults.
func ReadObject(raw []byte) (Object, error) {
	value, err := readJSON(string(raw))
	switch {
	case errors.Is(err, errFollowed):
		return nil, fault.New(fault.Invalid, "the body must be one JSON object; something follows it")
	case err != nil:
		return nil, fault.New(fault.Invalid, "the body is not JSON: %v", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fault.New(fault.Invalid, "the body must be a JSON object")
	}
	return object, nil
}

// errFollowed is the error of readJSON for a text that goes on after its value.
var errFollowed = errors.New("something follows the value")

// readJSON returns the only JSON value of a text. Numbers are json.Number.
func readJSON(text string) (value any, err error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errFollowed
	}
	return value, nil
}
