// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// envelope is the outer form of every message; the message itself is JSON in a string
// (oslo_messaging/_drivers/common.py, serialize_msg).
type envelope struct {
	Version string  `json:"oslo.version"`
	Message *string `json:"oslo.message"`
}

// seal returns message, an object, in an envelope.
func seal(message any) ([]byte, error) {
	inner, err := Marshal(message)
	if err != nil {
		return nil, err
	}
	return Marshal(envelope{Version: "2.0", Message: new(string(inner))})
}

// unseal returns the message in an envelope. A body without an envelope is the message itself, as
// in version 1.0.
func unseal(body []byte) (map[string]json.RawMessage, error) {
	var outer envelope
	if err := json.Unmarshal(body, &outer); err != nil {
		return nil, fmt.Errorf("read envelope: %w", err)
	}
	if outer.Message != nil {
		if major, _, _ := strings.Cut(outer.Version, "."); major != "2" {
			return nil, fmt.Errorf("the envelope has version %q; only 2.0 is known", outer.Version)
		}
		body = []byte(*outer.Message)
	}
	var message map[string]json.RawMessage
	if err := json.Unmarshal(body, &message); err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	return message, nil
}

// Marshal is json.Marshal without the escapes for <, > and &.
func Marshal(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// field reads one field of a message into value; a missing or null field leaves value as it is.
func field(message map[string]json.RawMessage, name string, value any) error {
	raw, ok := message[name]
	if !ok {
		return nil
	}
	return fault.While(json.Unmarshal(raw, value), "read %s", name)
}

// object returns value as a JSON object; nil is the empty object.
func object(value any) (json.RawMessage, error) {
	if value == nil {
		return json.RawMessage("{}"), nil
	}
	raw, err := Marshal(value)
	if err != nil {
		return nil, err
	}
	if len(raw) == 0 || raw[0] != '{' {
		return nil, fmt.Errorf("%T is not a JSON object", value)
	}
	return raw, nil
}

// hexOf returns a UUID as oslo writes it: 32 hexadecimal digits.
func hexOf(id string) string { return strings.ReplaceAll(id, "-", "") }
