// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/json"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// rowOfBestEffort returns the row that stores a request and the user data of its servers.
func rowOfBestEffort(r state.Request, userData string) (bestEffortRow, error) {
	terms, err := encode(r)
	key := r.Key
	if key == "" {
		key = r.ID // no other request has it
	}
	return bestEffortRow{
		ID: r.ID, ProjectID: r.ProjectID, RequestKey: key, BodyHash: r.BodyHash, CreatedAt: int64(r.Created),
		CanceledAt: int64(r.Canceled), OverAt: int64(r.Over), Terms: terms, UserData: userData,
	}, err
}

func (row *bestEffortRow) request() (state.Request, error) {
	var r state.Request
	if err := json.Unmarshal(row.Terms, &r); err != nil {
		return state.Request{}, fmt.Errorf("decode best-effort request %s: %w", row.ID, err)
	}
	r.Place, r.Canceled, r.Over = row.Place, span.Instant(row.CanceledAt), span.Instant(row.OverAt)
	return r, nil
}

func rowsOfVMs(request string, vms []state.VM) (rows []bestEffortVMRow, err error) {
	for _, v := range vms {
		state, err := encode(v)
		if err != nil {
			return nil, err
		}
		rows = append(rows, bestEffortVMRow{ID: v.ID, RequestID: request, Number: v.Number, Phase: string(v.Phase), Server: v.Server, State: state})
	}
	return rows, nil
}

func (row *bestEffortVMRow) vm() (v state.VM, err error) {
	if err := json.Unmarshal(row.State, &v); err != nil {
		return state.VM{}, fmt.Errorf("decode VM %s of best-effort work: %w", row.ID, err)
	}
	return v, nil
}
