// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"encoding/json"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Request is one call or cast, for its handler.
type Request struct {
	Method    string
	Namespace string // "" if the caller names none
	Version   string // "1.0" if the caller names none
	// Args are the arguments by name, a JSON object.
	Args json.RawMessage
	// Context is the caller's; ctx carries it too.
	Context Context

	id      string        // _msg_id; "" for a cast
	replyTo string        // _reply_q
	monitor time.Duration // _timeout: how long the caller waits for a sign of life; 0 until the call ends
	unique  string        // _unique_id
	// wrong is why the request cannot be decoded although it can be answered.
	wrong error
	undo  func()
}

// Undo sets f to run, once, if the caller gets no result: because the handler fails after all, or
// because the caller is gone and the answer has remained unread for longer than the caller would
// have waited for a sign of life. If the result is unknown, or still unknown when the server
// stops, f does not run. A handler calls Undo at most once, before it returns; in a cast it has no
// effect.
func (r *Request) Undo(f func()) { r.undo = f }

// Patience returns how long the caller waits for a sign of life, according to the request.
func (r *Request) Patience() time.Duration { return r.patience(0) }

// patience returns how long the caller waits for a sign of life; expiration is that of the
// message.
func (r *Request) patience(expiration time.Duration) time.Duration {
	switch {
	case r.monitor > 0:
		return max(r.monitor, shortestPatience)
	case expiration > 0:
		return max(expiration, shortestPatience)
	}
	return defaultResponse
}

// Decode decodes the arguments into args, a pointer to a struct or map.
func (r *Request) Decode(args any) error {
	return fault.While(json.Unmarshal(r.Args, args), "read arguments of %s", r.Method)
}

// encode returns the message of the request (oslo_messaging/rpc/client.py, _make_message;
// _drivers/amqpdriver.py, _send).
func (r *Request) encode() ([]byte, error) {
	fields := map[string]json.RawMessage{"args": r.Args}
	set := func(name string, value any) { fields[name], _ = Marshal(value) }
	set("method", r.Method)
	set("_unique_id", r.unique)
	if r.Namespace != "" {
		set("namespace", r.Namespace)
	}
	if r.Version != "" {
		set("version", r.Version)
	}
	if r.id != "" {
		set("_msg_id", r.id)
		set("_reply_q", r.replyTo)
		set("_timeout", nil)
		if r.monitor > 0 {
			set("_timeout", int(r.monitor.Seconds()))
		}
	}
	r.Context.pack(fields)
	return seal(fields)
}

// decodeRequest decodes the message of a request. It fails only if the request is wrong and has no
// caller that could get the error.
func decodeRequest(body []byte) (*Request, error) {
	fields, err := unseal(body)
	if err != nil {
		return nil, err
	}
	r := &Request{Version: "1.0", Args: json.RawMessage("{}"), Context: unpackContext(fields)}
	var seconds float64
	for name, value := range map[string]any{
		"method": &r.Method, "namespace": &r.Namespace, "version": &r.Version, "args": &r.Args,
		"_msg_id": &r.id, "_reply_q": &r.replyTo, "_timeout": &seconds, "_unique_id": &r.unique,
	} {
		if err := field(fields, name, value); err != nil {
			r.wrong = fault.New(fault.Invalid, "the request cannot be parsed: %v", err)
		}
	}
	if r.wrong != nil && (r.id == "" || r.replyTo == "") {
		return nil, r.wrong
	}
	r.monitor = time.Duration(seconds * float64(time.Second))
	return r, nil
}

// reply is an answer or, if Ending is false, a sign of life
// (oslo_messaging/_drivers/amqpdriver.py, _send_reply).
type reply struct {
	Result  json.RawMessage `json:"result"`
	Failure *string         `json:"failure"`
	Ending  bool            `json:"ending"`
	ID      string          `json:"_msg_id"`
	Unique  string          `json:"_unique_id"`
}

// decodeReply returns the reply in a message. A null result is empty.
func decodeReply(body []byte) (reply, error) {
	fields, err := unseal(body)
	if err != nil {
		return reply{}, err
	}
	var r reply
	for name, value := range map[string]any{
		"failure": &r.Failure, "ending": &r.Ending, "_msg_id": &r.ID, "_unique_id": &r.Unique,
	} {
		if err := field(fields, name, value); err != nil {
			return reply{}, err
		}
	}
	if result := fields["result"]; string(result) != "null" {
		r.Result = result
	}
	return r, nil
}
