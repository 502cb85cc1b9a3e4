package oslo

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Request is one call or cast as a handler sees it.
type Request struct {
	Method    string
	Namespace string // "" when the caller names none
	Version   string // "1.0" when the caller names none
	// Args are the arguments by name, a JSON object.
	Args json.RawMessage
	// Context is the caller's; ctx carries it too.
	Context Context

	id      string        // _msg_id; "" for a cast
	replyTo string        // _reply_q
	monitor time.Duration // _timeout: how long the caller waits for a sign of life; 0 as long as the call
	unique  string        // _unique_id
	// wrong is why the request cannot be read, though it can be answered.
	wrong error
	undo  func()
}

// Undo has f called, once, where the caller gets no result: the handler fails after all,
// or the caller is gone, and the answer has been unread for longer than it would have
// waited for a sign of life. Where nobody knows whether the answer has arrived, or the
// server is stopped before that is known, f is not called. A handler calls Undo at most
// once, before it returns; in a cast that does nothing.
func (r *Request) Undo(f func()) { r.undo = f }

// Patience is how long the caller waits for a sign of life, as far as the request itself says.
func (r *Request) Patience() time.Duration { return r.patience(0) }

// patience is how long the caller waits for a sign of life; expiration is its message's.
func (r *Request) patience(expiration time.Duration) time.Duration {
	switch {
	case r.monitor > 0:
		return max(r.monitor, shortestPatience)
	case expiration > 0:
		return max(expiration, shortestPatience)
	}
	return defaultResponse
}

// Decode reads the arguments into args, a pointer to a struct or map.
func (r *Request) Decode(args any) error {
	if err := json.Unmarshal(r.Args, args); err != nil {
		return fmt.Errorf("read arguments of %s: %w", r.Method, err)
	}
	return nil
}

// encode gives the message of the request (oslo_messaging/rpc/client.py,
// _make_message; _drivers/amqpdriver.py, _send).
func (r *Request) encode() ([]byte, error) {
	fields := map[string]json.RawMessage{"args": r.Args}
	set := func(name string, value any) { fields[name], _ = marshal(value) }
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

// decodeRequest reads the message of a request. It fails where there is nobody to be
// told what is wrong with it.
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
			r.wrong = fault.New(fault.Invalid, "the request is not readable: %v", err)
		}
	}
	if r.wrong != nil && (r.id == "" || r.replyTo == "") {
		return nil, r.wrong
	}
	r.monitor = time.Duration(seconds * float64(time.Second))
	return r, nil
}

// reply is an answer, or with Ending false a sign of life
// (oslo_messaging/_drivers/amqpdriver.py, _send_reply).
type reply struct {
	Result  json.RawMessage `json:"result"`
	Failure *string         `json:"failure"`
	Ending  bool            `json:"ending"`
	ID      string          `json:"_msg_id"`
	Unique  string          `json:"_unique_id"`
}

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
