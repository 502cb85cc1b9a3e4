// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/policy"
)

// rules are the policy in effect; load may replace it while requests are decided.
type rules struct {
	current atomic.Pointer[policy.Enforcer]
}

// Check implements serving.Enforcer.
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
	if path := c.ResolvePath(c.Policy.File); c.Policy.File != usualPolicy || exists(path) {
		o.File = path
	}
	for _, dir := range c.Policy.Dirs {
		if path := c.ResolvePath(dir); dir != usualPolicyDir || exists(path) {
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
	return !errors.Is(err, fs.ErrNotExist)
}

// identity is who callers are, and what they may do.
type identity struct {
	serving.Authenticator
	rules  *rules
	signIn *keystone.SignIn // nil without Keystone
}

// keystoneEvery is how often the job keystone checks whether Keystone answers.
const keystoneEvery = 30 * time.Second

// openIdentity opens the configured authenticator and the policy.
func openIdentity(p process) (who identity, f feature, err error) {
	who.rules = &rules{}
	if err := who.rules.load(p.config); err != nil {
		return who, f, err
	}
	if c := p.config.NoAuth; p.config.API.AuthStrategy == "noauth" {
		who.Authenticator = api.Fixed{ProjectID: c.ProjectID, UserID: c.UserID, Roles: c.Roles}
		return who, f, nil
	}
	o := p.config.Keystone.Options
	o.ServiceType, o.Now, o.Log = serviceType, time.Now, p.logOf("keystone")
	tokens, err := keystone.New(o)
	if err != nil {
		return who, f, err
	}
	if who.signIn, err = keystone.NewSignIn(o.Connection); err != nil {
		return who, f, err
	}
	who.Authenticator = api.Keystone{Tokens: tokens}
	f.jobs = append(f.jobs, job.Job{Name: "keystone", Every: keystoneEvery, Step: tokens.Check})
	return who, f, nil
}

// serviceType is Almanac's type in Keystone's catalog.
const serviceType = "reservation"
