// SPDX-License-Identifier: Apache-2.0

package openstack

import "context"

// callersToken is the key of a caller's token in a context.
type callersToken struct{}

// As returns a context in which requests to a service have the caller's token instead of the
// service user's: the service answers as it would answer the caller.
func As(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, callersToken{}, token)
}

// callers returns the token of As; false if requests have the service user's.
func callers(ctx context.Context) (token string, ok bool) {
	token, ok = ctx.Value(callersToken{}).(string)
	return token, ok
}
