// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"context"
	"reflect"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// record stores the claims that are about to be sent to Placement, if they differ from the last
// record. refused is true if Placement has refused the claims of the last record.
func (e *eviction) record(ctx context.Context, refused bool) error {
	if e.evictor.Records == nil || e.recorded != nil && reflect.DeepEqual(e.recorded, e.Preemptors) {
		return nil
	}
	next := Record{ID: e.evictor.NewID(), Preemptors: slices.Clone(e.Preemptors), Victims: reductions(e.Victims)}
	if err := e.evictor.Records.BeginEviction(ctx, next); err != nil {
		return unrecorded(err)
	}
	if refused {
		_ = e.deleteRecord(ctx) // or the rollback of the request does
	}
	e.Unconfirmed.Records, e.recorded = append(e.Unconfirmed.Records, next.ID), next.Preemptors
	return nil
}

// deleteRecord deletes the last record of the eviction. It fails with a Conflict fault if another
// replica has taken it over.
func (e *eviction) deleteRecord(ctx context.Context) error {
	if e.recorded == nil {
		return nil
	}
	records := e.Unconfirmed.Records
	last := len(records) - 1
	err := e.evictor.deleteRecord(ctx, records[last])
	if err == nil || fault.Is(err, fault.Conflict) {
		e.Unconfirmed.Records, e.recorded = records[:last], nil
	}
	return err
}
