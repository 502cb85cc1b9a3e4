package app

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/policy"
)

// rules are the policy in effect; load may replace it while requests are decided.
type rules struct {
	current atomic.Pointer[policy.Enforcer]
}

// Check implements api.Enforcer.
func (r *rules) Check(rule string, by policy.Credentials, target map[string]string) error {
	return r.current.Load().Check(rule, by, target)
}

// load reads the policy files.
func (r *rules) load(c config.Config) error {
	enforcer, err := policy.Load(PolicyOptions(c))
	if err != nil {
		return err
	}
	r.current.Store(enforcer)
	return nil
}

// PolicyOptions returns the configured policy files. The default file and folder may be absent.
func PolicyOptions(c config.Config) policy.Options {
	var o policy.Options
	if path := c.Beside(c.Policy.File); c.Policy.File != usualPolicy || exists(path) {
		o.File = path
	}
	for _, dir := range c.Policy.Dirs {
		if path := c.Beside(dir); dir != usualPolicyDir || exists(path) {
			o.Dirs = append(o.Dirs, path)
		}
	}
	return o
}

const (
	usualPolicy    = "policy.yaml"
	usualPolicyDir = "policy.d"
)

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// authenticator returns the configured authenticator. check, if not nil, reports whether it works.
func (a *App) authenticator() (callers api.Authenticator, check func(ctx context.Context) error, err error) {
	if c := a.config.NoAuth; a.config.API.AuthStrategy == "noauth" {
		return api.Fixed{ProjectID: c.ProjectID, UserID: c.UserID, Roles: c.Roles}, nil, nil
	}
	o := a.config.Keystone.Options
	o.ServiceType, o.Now, o.Log = serviceType, time.Now, a.log.With("component", "keystone")
	tokens, err := keystone.New(o)
	if err != nil {
		return nil, nil, err
	}
	return api.Keystone{Tokens: tokens}, tokens.Check, nil
}

// serviceType is Almanac's type in Keystone's catalog.
const serviceType = "reservation"
