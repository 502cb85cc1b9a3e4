// SPDX-License-Identifier: Apache-2.0

// Package object reads and writes the versioned objects that Nova's services exchange
// (oslo_versionedobjects/base.py obj_to_primitive), as far as scheduling needs them:
// nova-conductor's request (RequestSpec), the reply (Selection), and the news about hosts,
// instances and aggregates that schedulers receive.
//
// A RequestSpec may contain the credentials of a cell's database and message broker. Nothing
// here prints them: an object shows only its name and version.
package object

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// Bounds on the input. Nova's own objects have about 20 KiB and a nesting depth of about ten.
const (
	maxSize  = 16 << 20 // bytes
	maxDepth = 100      // objects and lists inside each other
)

// The names of an object's parts on the wire.
const (
	keyName      = "nova_object.name"
	keyNamespace = "nova_object.namespace"
	keyVersion   = "nova_object.version"
	keyData      = "nova_object.data"
	keyChanges   = "nova_object.changes"
)

// Object is any versioned object. Data has the fields that are set, in their original form: a
// field that is null is set, and numbers keep all their digits.
type Object struct {
	Name      string // "RequestSpec"
	Namespace string // "nova"
	Version   string // "1.14"
	Data      map[string]json.RawMessage
	Changes   []string // the fields that have changed since they were stored

	more map[string]json.RawMessage // unknown further parts
}

// UnmarshalJSON reads an object, without parsing its fields.
func (o *Object) UnmarshalJSON(raw []byte) error {
	read, err := readObject(raw)
	if err == nil {
		*o = read
	}
	return err
}

// readObject reads an object from untrusted input.
func readObject(raw []byte) (Object, error) {
	if err := bounded(raw); err != nil {
		return Object{}, err
	}
	if !json.Valid(raw) {
		return Object{}, fault.New(fault.Invalid, "a versioned object of Nova must be JSON")
	}
	return splitObject(bytes.Clone(raw))
}

// splitObject reads an object from valid JSON. Its fields share the memory of raw.
func splitObject(raw []byte) (o Object, err error) {
	parts, ok := members(raw)
	if !ok {
		return o, fault.New(fault.Invalid, "a versioned object of Nova must be a JSON object")
	}
	for key, part := range parts {
		switch key {
		case keyName:
			o.Name, _ = unquote(part)
		case keyNamespace:
			o.Namespace, _ = unquote(part)
		case keyVersion:
			o.Version, _ = unquote(part)
		case keyData:
			o.Data, _ = members(part)
		case keyChanges:
			if json.Unmarshal(part, &o.Changes) != nil {
				return o, fault.New(fault.Invalid, "the changes of a versioned object of Nova must be a list of names")
			}
		default:
			if o.more == nil {
				o.more = make(map[string]json.RawMessage)
			}
			o.more[key] = part
		}
	}
	if o.Name == "" || o.Namespace == "" || o.Version == "" || o.Data == nil {
		return o, fault.New(fault.Invalid, "a versioned object of Nova must have a name, a namespace, a version and data")
	}
	return o, nil
}

// MarshalJSON writes the object as Nova does; empty changes are omitted.
func (o Object) MarshalJSON() ([]byte, error) {
	b := append([]byte{'{'}, `"`+keyName+`":`...)
	b = appendText(b, o.Name)
	b = appendText(append(b, `,"`+keyNamespace+`":`...), o.Namespace)
	b = appendText(append(b, `,"`+keyVersion+`":`...), o.Version)
	b = appendMembers(append(b, `,"`+keyData+`":{`...), o.Data)
	b = append(b, '}')
	if len(o.Changes) > 0 {
		changes, err := oslo.Marshal(o.Changes)
		if err != nil {
			return nil, err
		}
		b = append(append(b, `,"`+keyChanges+`":`...), changes...)
	}
	if len(o.more) > 0 {
		b = appendMembers(append(b, ','), o.more)
	}
	return append(b, '}'), nil
}

// appendMembers appends the members of a JSON object, sorted.
func appendMembers(b []byte, members map[string]json.RawMessage) []byte {
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, name), ':')
		b = append(b, members[name]...)
	}
	return b
}

// appendText appends a JSON string.
func appendText(b []byte, text string) []byte {
	if plain(text) {
		return append(append(append(b, '"'), text...), '"')
	}
	quoted, err := oslo.Marshal(text)
	if err != nil { // any text can be encoded
		return append(b, `""`...)
	}
	return append(b, quoted...)
}

// String returns name and version: "RequestSpec 1.14".
func (o Object) String() string { return o.Name + " " + o.Version }

// Format prints the same for every verb.
func (o Object) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, o.String()) }

// LogValue returns the same for slog.
func (o Object) LogValue() slog.Value { return slog.StringValue(o.String()) }

// isNull reports whether a field is unset or null.
func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null"
}
