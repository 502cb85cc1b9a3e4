package oslo

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Context is what travels beside a message about who asks and why: the keys of
// oslo.context without their prefix "_context_", and their JSON values.
// It can hold the user's token: it is not for logs.
type Context map[string]json.RawMessage

// RequestID is the id of the request in the service that sent the message,
// or "".
func (c Context) RequestID() string { return c.text("request_id") }

// GlobalRequestID is the id the user's request has across services, or "".
func (c Context) GlobalRequestID() string { return c.text("global_request_id") }

// UserID is the id of the user who asks, or "".
func (c Context) UserID() string { return cmp.Or(c.text("user_id"), c.text("user")) }

// Timestamp is when the service that the user asked began with the request, by its clock, or
// the zero time. What is sent for the request later carries the same (oslo_context;
// nova/context.py RequestContext.to_dict).
func (c Context) Timestamp() time.Time {
	at, err := time.Parse("2006-01-02T15:04:05.999999", c.text("timestamp"))
	if err != nil {
		return time.Time{}
	}
	return at
}

func (c Context) text(key string) string {
	var text string
	if json.Unmarshal(c[key], &text) != nil {
		return ""
	}
	return text
}

// NewRequestContext gives the Context of a request of our own. Empty ids are
// left out.
func NewRequestContext(requestID, globalRequestID string) Context {
	c := Context{}
	for key, id := range map[string]string{"request_id": requestID, "global_request_id": globalRequestID} {
		if id != "" {
			c[key], _ = json.Marshal(id)
		}
	}
	return c
}

type contextKey struct{}

// WithContext gives a ctx whose calls, casts and notifications carry c. A
// handler's ctx has the Context of its request, so what it sends carries it on.
func WithContext(ctx context.Context, c Context) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// ContextOf gives the Context that ctx carries, or nil.
func ContextOf(ctx context.Context) Context {
	c, _ := ctx.Value(contextKey{}).(Context)
	return c
}

const contextPrefix = "_context_"

// pack adds the context to the fields of a message.
func (c Context) pack(fields map[string]json.RawMessage) {
	for key, value := range c {
		fields[contextPrefix+key] = value
	}
}

// unpackContext gives the context among the fields of a message.
func unpackContext(fields map[string]json.RawMessage) Context {
	c := Context{}
	for key, value := range fields {
		if name, ok := strings.CutPrefix(key, contextPrefix); ok {
			c[name] = value
		}
	}
	return c
}

// notified are the keys that go into notifications: whoever reads the bus must
// not find a token there (oslo_messaging/notify/notifier.py, _sanitize_context).
var notified = strings.Fields(`user_id project_id domain_id user_domain_id project_domain_id is_admin request_id
	roles user_name project_name domain_name user_domain_name project_domain_name service_user_id
	service_user_domain_id service_user_domain_name service_project_id service_project_name
	service_project_domain_id service_project_domain_name service_roles global_request_id system_scope
	user domain user_domain project_domain`)

func (c Context) withoutSecrets() Context {
	safe := Context{}
	for key, value := range c {
		if slices.Contains(notified, key) {
			safe[key] = value
		}
	}
	return safe
}
