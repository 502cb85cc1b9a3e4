// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/policy"
)

const askerKey = "asker"

// Asker returns the sender of the request, which Authenticate has identified.
func (c *Call) Asker() *Asker { return c.MustGet(askerKey).(*Asker) }

// Authenticate identifies the caller and requires a project, unless the token is for the system: a
// caller without one would see every project's reservations.
func Authenticate(c *Call) {
	var who policy.Credentials
	check := func() (err error) {
		who, err = c.Identify()
		return c.failedAuthentication(err)
	}
	err := c.WithToken(check)
	if err != nil {
		c.Fail(err)
		return
	}
	c.Set(askerKey, &Asker{
		Credentials: who, requestID: c.GetString(requestIDKey), rules: c.server.Policy, decided: make(map[decision]error),
	})
}

// Identify returns the owner of the request's token. It fails if the token is for neither a project nor the system.
func (c *Call) Identify() (policy.Credentials, error) {
	who, err := c.server.Authenticator.Authenticate(c.Request)
	if err == nil && who.ProjectID == "" && !who.System {
		err = fault.New(fault.Denied, "your token is for no project; get one for the project that the reservations belong to")
	}
	return who, err
}

// failedAuthentication counts the error of an authentication, and returns it.
func (c *Call) failedAuthentication(err error) error {
	if err != nil {
		c.server.metrics.authFailures.WithLabelValues(string(fault.Of(err).Kind)).Inc()
	}
	return err
}

// WithToken runs check, which finds out whether the token of the request is right. If only another service knows, it is
// an attempt of the sender's address; see attempt.
func (c *Call) WithToken(check func() error) error {
	if c.server.Authenticator.Knows(c.Request) {
		return check()
	}
	return c.attempt("too many requests from your address had a wrong token", check)
}

// SignIn runs check, which finds out whether what somebody enters is right, as an attempt of the sender's address.
func (c *Call) SignIn(check func() error) error {
	return c.attempt("too many attempts to sign in came from your address", func() error { return c.failedAuthentication(check()) })
}

// attempt runs check, and counts it against the sender's address if it fails with an Unauthorized fault. If there were
// too many, it does not run check, and fails with the words. It counts before the check, so that concurrent requests
// count as well.
func (c *Call) attempt(words string, check func() error) error {
	from := c.sender()
	if wait := c.server.takeFailure(from); wait > 0 {
		return c.server.tooMany(wait, words)
	}
	err := check()
	if !fault.Is(err, fault.Unauthorized) {
		c.server.forgive(from)
	}
	return err
}

// InTurn runs do in the turn of the caller's project.
func (c *Call) InTurn(do func()) error {
	return c.server.Reservations.InTurn(c.Request.Context(), c.Asker().ProjectID, do)
}
