// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"context"
	"time"

	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// notifyOwners notifies the owners of the victims that their instances will be evicted at a time.
// It stores the notice first, so that another replica withdraws it if this replica stops. A victim
// whose notice cannot be sent is evicted too.
func (e *eviction) notifyOwners(ctx context.Context, at time.Time) error {
	notice := Record{NoticeFor: at}
	for _, v := range e.Victims {
		claim := placing.Claim{Consumer: v.Instance.ID, ProjectID: v.Instance.ProjectID}
		notice.Victims = append(notice.Victims, claiming.Victim{Host: v.Instance.Host, Claim: claim})
	}
	if e.evictor.Records != nil {
		notice.ID = e.evictor.NewID()
		if err := e.evictor.Records.BeginEviction(ctx, notice); err != nil {
			return unrecorded(err)
		}
	}
	e.notice = &notice
	for _, v := range e.Victims {
		if err := e.evictor.warn(ctx, Warning{Instance: v.Instance, At: at, Request: e.ID}); err != nil {
			e.evictor.Log.WarnContext(ctx, "could not notify the owner of an instance of its eviction", "instance", v.Instance.ID, "request", e.ID, "error", err)
		}
	}
	return nil
}

// withdrawNotice withdraws the notice to the owners of victims that stay. If that fails, the ledger
// repeats it.
func (e *eviction) withdrawNotice(ctx context.Context) {
	if e.notice == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	left := *e.notice
	left.Victims = nil
	for i, v := range e.Victims {
		if err := e.evictor.warn(ctx, Warning{Instance: v.Instance, Request: e.ID}); err != nil {
			e.evictor.Log.WarnContext(ctx, "could not withdraw an eviction notice; retrying", "instance", v.Instance.ID, "request", e.ID, "error", err)
			left.Victims = append(left.Victims, e.notice.Victims[i])
		}
	}
	if len(left.Victims) == 0 {
		e.deleteNotice(ctx)
		return
	}
	e.evictor.Ledger.scheduleNotice(left)
}

// deleteNotice deletes the record of the notice. If that fails, another replica withdraws the
// notice when this one has stopped, which has no effect on victims that are gone.
func (e *eviction) deleteNotice(ctx context.Context) {
	if e.evictor.Records == nil {
		return
	}
	if err := e.evictor.deleteRecord(ctx, e.notice.ID); err != nil {
		e.evictor.Log.DebugContext(ctx, "could not delete the record of a notice", "request", e.ID, "error", err)
	}
}
