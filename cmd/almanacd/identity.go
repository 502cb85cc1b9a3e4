// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/policy"
)

// rules returns the policy of the configuration.
func (s *service) rules() (*policy.Enforcer, error) {
	cfg, err := s.load()
	if err != nil {
		return nil, err
	}
	return policy.Load(app.PolicyOptions(cfg))
}

// identify returns the credentials of a token.
func (s *service) identify(ctx context.Context, token string) (policy.Credentials, error) {
	cfg, err := s.load()
	if err != nil {
		return policy.Credentials{}, err
	}
	tokens, err := keystone.New(keystone.Options{
		Connection: cfg.Keystone.Connection, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return policy.Credentials{}, err
	}
	t, err := tokens.Validate(ctx, token, "")
	if err != nil {
		return policy.Credentials{}, err
	}
	return api.CredentialsOf(t), nil
}
