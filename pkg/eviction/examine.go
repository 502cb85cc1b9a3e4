// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"context"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// examine reads the victims and their allocations, and determines what each victim keeps until it
// is gone. It fails with a Failure if a victim cannot be evicted in its present state.
func (e *eviction) examine(ctx context.Context) error {
	var failure Failure
	for i := range e.Victims {
		v := &e.Victims[i]
		reason, err := e.refresh(ctx, v)
		if err != nil {
			return claiming.TimedOut(err)
		}
		if reason != "" {
			failure = append(failure, stay{*v, reason})
		}
	}
	wanted := placing.Allocations{}
	for _, claim := range e.Preemptors {
		wanted.Add(claim.Allocations)
	}
	for i := range e.Victims {
		v := &e.Victims[i]
		v.claim.Allocations = Residual(v.On, v.claim.Before, wanted, e.Refused(v.On.Name))
	}
	if len(failure) > 0 {
		return failure
	}
	return nil
}

// refresh reads a victim. reason is why it cannot be evicted; "" if it can. err is the error of
// Placement.
func (e *eviction) refresh(ctx context.Context, v *Victim) (reason string, err error) {
	now, err := e.evictor.Servers.Server(ctx, v.Instance.ID)
	switch {
	case fault.Is(err, fault.NotFound):
		return alreadyGone, nil
	case err != nil:
		return err.Error(), nil
	}
	has, err := e.evictor.Placement.AllocationsOf(ctx, v.Instance.ID)
	if err != nil {
		return "", err
	}
	host := v.Instance.Host
	v.Instance = now
	v.Instance.Holds = claiming.ResourcesOn(v.On, has.Allocations)
	v.claim = placing.Claim{
		Consumer: now.ID, ProjectID: has.ProjectID, UserID: has.UserID, Generation: has.Generation, Before: has.Allocations,
	}
	switch {
	case now.Host != host:
		return "it is on another host", nil
	case v.Instance.NotEvictable() != "":
		return v.Instance.NotEvictable(), nil
	case e.evictor.Ledger.restores(has):
		return "its allocations in Placement are about to be restored", nil
	}
	return "", nil
}

// Residual returns the part of a victim's allocations on a host that stays in Placement until the
// victim is gone, so that no other request can claim it and a rollback has room. wanted is what the
// preemptors want; the victim releases as much of that as it has.
//
// Nothing of a resource class stays if Placement would refuse the remaining amount: an amount below
// the step or the minimum of the class, and any amount if more is in use than the host has. The
// latter counts only if refused is true, because Placement has refused the host before: claims in
// progress may be counted twice in what is in use.
func Residual(h *inventory.HostState, has, wanted placing.Allocations, refused bool) placing.Allocations {
	var stays placing.Allocations
	for provider, amounts := range has {
		for class, amount := range amounts {
			released := min(amount, wanted[provider][class])
			if released > 0 {
				wanted[provider][class] -= released
			}
			stock := h.Stocks[class]
			odd := released > 0 && (stock.Min > 1 || stock.Step > 1)
			if released == amount || odd || refused && stock.Used > stock.Limit() {
				continue
			}
			if stays == nil {
				stays = placing.Allocations{}
			}
			if stays[provider] == nil {
				stays[provider] = map[string]int64{}
			}
			stays[provider][class] = amount - released
		}
	}
	return stays
}
