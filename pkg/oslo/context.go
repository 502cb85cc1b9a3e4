// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Context describes the caller and the purpose of a message: the keys of oslo.context without
// their prefix "_context_", and their JSON values. It can contain the user's token, so it must
// never be logged.
type Context map[string]json.RawMessage

// RequestID returns the id of the request in the service that sent the message, or "".
func (c Context) RequestID() string { return c.text("request_id") }

// GlobalRequestID returns the id of the user's request across services, or "".
func (c Context) GlobalRequestID() string { return c.text("global_request_id") }

// UserID returns the id of the user, or "".
func (c Context) UserID() string { return cmp.Or(c.text("user_id"), c.text("user")) }

// Timestamp returns when the service that the user called began with the request, by its clock, or
// the zero time. All later messages for the request carry the same timestamp (oslo_context;
// nova/context.py RequestContext.to_dict).
func (c Context) Timestamp() time.Time {
	at, err := time.Parse("2006-01-02T15:04:05.999999", c.text("timestamp"))
	if err != nil {
		return time.Time{}
	}
	return at
}

// text returns a text of the context; "" if it has none with that key.
func (c Context) text(key string) string {
	var text string
	if json.Unmarshal(c[key], &text) != nil {
		return ""
	}
	return text
}

// NewRequestContext returns the Context of a request of Almanac's own. It omits empty ids.
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

// WithContext returns a ctx whose calls, casts and notifications carry c. A handler's ctx has the
// Context of its request, so that the handler's own messages carry it too.
func WithContext(ctx context.Context, c Context) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// ContextOf returns the Context in ctx, or nil.
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

// unpackContext returns the context in the fields of a message.
func unpackContext(fields map[string]json.RawMessage) Context {
	c := Context{}
	for key, value := range fields {
		if name, ok := strings.CutPrefix(key, contextPrefix); ok {
			c[name] = value
		}
	}
	return c
}

// notified are the keys that notifications contain: they must not show a token to readers of the
// bus (oslo_messaging/notify/notifier.py, _sanitize_context).
var notified = strings.Fields(`user_id project_id domain_id user_domain_id project_domain_id is_admin request_id
	roles user_name project_name domain_name user_domain_name project_domain_name service_user_id
	service_user_domain_id service_user_domain_name service_project_id service_project_name
	service_project_domain_id service_project_domain_name service_roles global_request_id system_scope
	user domain user_domain project_domain`)

// withoutSecrets returns the keys of the context that may be in a notification: no token.
func (c Context) withoutSecrets() Context {
	safe := Context{}
	for key, value := range c {
		if slices.Contains(notified, key) {
			safe[key] = value
		}
	}
	return safe
}
