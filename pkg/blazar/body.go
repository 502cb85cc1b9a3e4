// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Object is a JSON object of a request. Numbers are json.Number. Keys that nobody reads are
// ignored, as Blazar does, and null means the same as an absent key unless a call states otherwise.
type Object map[string]any

// ReadObject returns the body of a request, which must be one JSON object. Errors are Invalid
// faults.
func ReadObject(raw []byte) (Object, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fault.New(fault.Invalid, "the body is not JSON: %v", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fault.New(fault.Invalid, "the body must be one JSON object; something follows it")
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fault.New(fault.Invalid, "the body must be a JSON object")
	}
	return object, nil
}
