// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// asNova is the microversion in which Nova claims (nova/scheduler/client/report.py
// SAME_SUBTREE_VERSION). Since 1.38 a claim sets the type of its consumer, which Nova's
// consumers do not have.
var asNova = openstack.Microversion{Major: 1, Minor: 36}

// allocation is the allocations of a consumer in Placement's JSON. Placement validates the
// mappings that Nova adds, but does not store them (placement/handlers/allocation.py).
type allocation struct {
	Allocations map[string]taken `json:"allocations"`
	ProjectID   string           `json:"project_id"`
	UserID      string           `json:"user_id"`
	Generation  *int64           `json:"consumer_generation"`
}

type taken struct {
	Resources map[string]int64 `json:"resources"`
}

// Claim replaces the allocations of each consumer by those of its claim: all of them in one
// transaction, or none (POST /allocations). A claim without allocations deletes them.
//
// It returns a *placing.ErrNoCapacity, placing.ErrConsumerChanged or placing.ErrConcurrentUpdate,
// which are Conflict or Invalid faults too, or placing.ErrUnsent, which is an Unavailable fault.
// After any other Unavailable fault the claims may or may not have been granted, or may still be.
func (c *Client) Claim(ctx context.Context, claims []placing.Claim) error {
	doing := "claim resources"
	body := make(map[string]allocation, len(claims))
	for _, claim := range claims {
		body[claim.Consumer] = written(claim)
	}
	if len(claims) == 1 {
		doing += " for " + claims[0].Consumer
	} else {
		doing += fmt.Sprintf(" for %d consumers", len(claims))
	}
	var err error
	for range attempts {
		var sent atomic.Bool
		ctx := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
		err = c.service.SendAtMost(ctx, asNova, doing, http.MethodPost, "allocations", body, nil, http.StatusNoContent)
		if err != nil && !sent.Load() {
			return fmt.Errorf("%w: %w", placing.ErrUnsent, err)
		}
		err = refused(claims, err)
		if !errors.Is(err, placing.ErrConcurrentUpdate) {
			return err
		}
	}
	return err
}

// written returns a claim in the form of Placement.
func written(claim placing.Claim) allocation {
	a := allocation{
		Allocations: make(map[string]taken, len(claim.Allocations)),
		ProjectID:   claim.ProjectID, UserID: claim.UserID, Generation: claim.Generation,
	}
	for provider, amounts := range claim.Allocations {
		a.Allocations[provider] = taken{amounts}
	}
	return a
}

// refused returns the reason why Placement refused claims. Placement has an error code for
// claims that may succeed on another attempt, and none for a lack of capacity
// (placement/handlers/allocation.py set_allocations); only the message distinguishes the cases.
func refused(claims []placing.Claim, err error) error {
	answer, answered := errors.AsType[*openstack.Answer](err)
	if !answered {
		return err
	}
	says := func(words string) bool { return strings.Contains(answer.Message, words) }
	var why error
	switch {
	case answer.Code == "placement.concurrent_update" && says("consumer generation conflict"):
		why = placing.ErrConsumerChanged
	case answer.Code == "placement.concurrent_update":
		why = placing.ErrConcurrentUpdate
	case answer.Status == http.StatusConflict,
		answer.Status == http.StatusBadRequest && (says("that does not exist") || says("Unable to allocate inventory")):
		why = &placing.ErrNoCapacity{Provider: named(claims, answer.Message)}
	default:
		return err
	}
	return fmt.Errorf("%w: %w", why, err)
}

// named returns the provider of the claims that the message names.
func named(claims []placing.Claim, message string) string {
	for _, claim := range claims {
		for provider := range claim.Allocations {
			if strings.Contains(message, provider) {
				return provider
			}
		}
	}
	return ""
}

// AllocationsOf returns the allocations of a consumer; without any, there are no Allocations
// and no Generation (GET /allocations/{consumer}).
func (c *Client) AllocationsOf(ctx context.Context, consumer string) (placing.Claim, error) {
	doing := "read the allocations of consumer " + consumer
	var body allocation
	if err := c.service.GetAtMost(ctx, asNova, doing, "allocations/"+consumer, &body); err != nil {
		return placing.Claim{}, err
	}
	has := placing.Claim{Consumer: consumer}
	if body.Allocations == nil {
		return has, c.service.Malformed(doing, "it contains no allocations")
	}
	if len(body.Allocations) == 0 {
		return has, nil
	}
	if body.Generation == nil || body.ProjectID == "" || body.UserID == "" {
		return has, c.service.Malformed(doing, "it contains no consumer_generation, project_id or user_id")
	}
	has.ProjectID, has.UserID, has.Generation = body.ProjectID, body.UserID, body.Generation
	has.Allocations = make(placing.Allocations, len(body.Allocations))
	for provider, t := range body.Allocations {
		if len(t.Resources) == 0 {
			return placing.Claim{}, c.service.Malformed(doing, "provider %s has no resources", provider)
		}
		has.Allocations[provider] = t.Resources
	}
	return has, nil
}

// Release restores the allocations that each consumer had before its claim, all in one
// transaction. It skips claims that were not granted and those that someone else has changed
// since; neither is an error.
func (c *Client) Release(ctx context.Context, claims []placing.Claim) error {
	var err error
	for range attempts {
		var back []placing.Claim
		if back, err = c.unchanged(ctx, claims); err != nil || len(back) == 0 {
			return err
		}
		if err = c.Claim(ctx, back); !errors.Is(err, placing.ErrConsumerChanged) {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("release claims: %w", err)
	}
	return err
}

// unchanged returns the claims that restore the allocations from before the claims that still
// hold.
func (c *Client) unchanged(ctx context.Context, claims []placing.Claim) ([]placing.Claim, error) {
	var back []placing.Claim
	for _, claim := range claims {
		has, err := c.AllocationsOf(ctx, claim.Consumer)
		if err != nil {
			return nil, err
		}
		if claim.Granted(has) {
			has.Allocations = claim.Before
			back = append(back, has)
		}
	}
	return back, nil
}
