// SPDX-License-Identifier: Apache-2.0

package topic

import (
	"encoding/json"

	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// noValidHost returns Nova's exception for a request without a host (nova/exception.py
// NoValidHost). It is the only exception whose message reaches the tenant, as the fault of the
// server.
func noValidHost(reason string) error {
	message := "No valid host was found. " + reason
	return &oslo.RemoteError{
		Class: "NoValidHost", Module: "nova.exception", Message: message,
		Args:   []json.RawMessage{quote(message)},
		Kwargs: map[string]json.RawMessage{"reason": quote(reason), "code": json.RawMessage("500")},
	}
}

func quote(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // cannot fail: invalid UTF-8 is replaced
	return raw
}
