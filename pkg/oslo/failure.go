// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// RemoteError is an exception that a server returned for a call. If a handler returns one, the
// server passes it on unchanged, so that failures pass through a service between two others.
type RemoteError struct {
	Class     string   // "NoValidHost"
	Module    string   // "nova.exception"
	Message   string   // the exception's str()
	Traceback []string // lines, for the log
	Args      []json.RawMessage
	Kwargs    map[string]json.RawMessage
}

func (e *RemoteError) Error() string {
	if e.Module == faultModule {
		return e.Message
	}
	return fmt.Sprintf("%s.%s: %s", e.Module, e.Class, e.Message)
}

// Unwrap returns the *fault.Error of another Almanac, and nil for exceptions of other services.
func (e *RemoteError) Unwrap() error {
	kind, ours := kindOf[e.Class]
	if e.Module != faultModule || !ours {
		return nil
	}
	f := &fault.Error{Kind: kind, Message: e.Message}
	var seconds float64
	// The kwargs are optional: without them the kind and the message remain.
	_ = field(e.Kwargs, "field", &f.Field)
	_ = field(e.Kwargs, "retry_after", &seconds)
	f.RetryAfter = time.Duration(seconds * float64(time.Second))
	return f
}

// faultModule is the Python module that Almanac's failures name. No such module exists: a Python
// caller gets oslo_messaging.RemoteError with class and message.
const faultModule = "almanac.fault"

// classes maps the kinds of faults to classes of exceptions.
var classes = map[fault.Kind]string{
	fault.Invalid:       "Invalid",
	fault.Unauthorized:  "Unauthorized",
	fault.Denied:        "Denied",
	fault.NotFound:      "NotFound",
	fault.Conflict:      "Conflict",
	fault.Refused:       "Refused",
	fault.TooLarge:      "TooLarge",
	fault.Unprocessable: "Unprocessable",
	fault.Unavailable:   "Unavailable",
	fault.Internal:      "Internal",
}

var kindOf = func() map[string]fault.Kind {
	kinds := map[string]fault.Kind{}
	for kind, class := range classes {
		kinds[class] = kind
	}
	return kinds
}()

// dispatcherModule contains the two exceptions of oslo's dispatcher.
const dispatcherModule = "oslo_messaging.rpc.dispatcher"

func noSuchMethod(method string) *RemoteError {
	message := "Endpoint does not support RPC method " + method
	return &RemoteError{Class: "NoSuchMethod", Module: dispatcherModule, Message: message, Args: texts(message)}
}

func unsupportedVersion(version, method string) *RemoteError {
	message := fmt.Sprintf("Endpoint does not support RPC version %s. Attempted method: %s", version, method)
	return &RemoteError{Class: "UnsupportedVersion", Module: dispatcherModule, Message: message, Args: texts(message)}
}

// texts returns the lines as JSON strings.
func texts(lines ...string) []json.RawMessage {
	var raw []json.RawMessage
	for _, line := range lines {
		text, _ := Marshal(line)
		raw = append(raw, text)
	}
	return raw
}

// remoteError returns err as an exception. It omits the cause of a fault: the cause is for
// Almanac's log and may contain confidential details.
func remoteError(err error) *RemoteError {
	f, isFault := errors.AsType[*fault.Error](err)
	if passed, ok := errors.AsType[*RemoteError](err); ok && (!isFault || !errors.Is(f, passed)) {
		return passed
	}
	f = fault.Of(err)
	remote := &RemoteError{
		Class:   classes[f.Kind],
		Module:  faultModule,
		Message: f.Message,
		Args:    texts(f.Message),
		Kwargs:  map[string]json.RawMessage{},
	}
	if f.Field != "" {
		remote.Kwargs["field"] = texts(f.Field)[0]
	}
	if f.RetryAfter > 0 {
		remote.Kwargs["retry_after"], _ = json.Marshal(f.RetryAfter.Seconds())
	}
	return remote
}

// failure is an exception on the wire, encoded as JSON in a string
// (oslo_messaging/_drivers/common.py, serialize_remote_exception).
type failure struct {
	Class   string                     `json:"class"`
	Module  string                     `json:"module"`
	Message string                     `json:"message"`
	TB      []string                   `json:"tb"`
	Args    []json.RawMessage          `json:"args"`
	Kwargs  map[string]json.RawMessage `json:"kwargs"`
}

// encode returns the error in the form in which oslo.messaging sends it.
func (e *RemoteError) encode() (string, error) {
	f := failure{e.Class, e.Module, e.Message, e.Traceback, e.Args, e.Kwargs}
	if f.TB == nil {
		f.TB = []string{}
	}
	if f.Args == nil {
		f.Args = []json.RawMessage{}
	}
	if f.Kwargs == nil {
		f.Kwargs = map[string]json.RawMessage{}
	}
	raw, err := Marshal(f)
	return string(raw), err
}

// decodeFailure returns the error that oslo.messaging has sent; one that states so if it cannot be
// parsed.
func decodeFailure(text string) *RemoteError {
	var f failure
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&f); err != nil {
		return &RemoteError{Class: "RemoteError", Module: "oslo_messaging", Message: "the failure cannot be parsed: " + err.Error()}
	}
	return &RemoteError{f.Class, f.Module, f.Message, f.TB, f.Args, f.Kwargs}
}
