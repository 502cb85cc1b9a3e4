package store

import (
	"encoding/json"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

type (
	bestEffortRow   bestEffort0009
	bestEffortVMRow bestEffortVM0009
)

func (bestEffortRow) TableName() string   { return "besteffort_requests" }
func (bestEffortVMRow) TableName() string { return "besteffort_vms" }

// bestEffortTerms is what of a state.Request is stored as JSON.
type bestEffortTerms struct {
	UserID   string            `json:"user_id"`
	Name     string            `json:"name"`
	Flavor   [2]string         `json:"flavor"` // id, name
	Image    [2]string         `json:"image"`
	VCPUs    int64             `json:"vcpus"`
	MemoryMB int64             `json:"memory_mb"`
	DiskGB   int64             `json:"disk_gb"`
	Custom   map[string]int64  `json:"custom,omitempty"`
	Duration int64             `json:"duration"`
	Parallel bool              `json:"parallel,omitempty"`
	Networks []string          `json:"networks,omitempty"`
	KeyName  string            `json:"key_name,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Trust    string            `json:"trust,omitempty"`
	Keyed    bool              `json:"keyed,omitempty"` // it came with a key
}

// bestEffortVM is a state.VM as it is stored, without its id and number.
type bestEffortVM struct {
	Phase    besteffort.Phase `json:"phase"`
	Node     string           `json:"node,omitempty"`
	Since    span.Instant     `json:"since"`
	Until    span.Instant     `json:"until,omitempty"`
	Ran      int64            `json:"ran,omitempty"`
	Server   string           `json:"server,omitempty"`
	Attempt  int              `json:"attempt,omitempty"`
	Asked    span.Instant     `json:"asked,omitempty"`
	Deadline span.Instant     `json:"deadline,omitempty"`
	Held     *bestEffortHeld  `json:"held,omitempty"`
	Then     besteffort.Phase `json:"then,omitempty"`
	Failures int              `json:"failures,omitempty"`
	RetryAt  span.Instant     `json:"retry_at,omitempty"`
	Avoids   []string         `json:"avoids,omitempty"`
	Released bool             `json:"released,omitempty"`
	Reason   string           `json:"reason,omitempty"`
}

type bestEffortHeld struct {
	ProjectID   string              `json:"project"`
	UserID      string              `json:"user"`
	Allocations placing.Allocations `json:"allocations"`
}

func rowOfBestEffort(r state.Request, userData string) (bestEffortRow, error) {
	terms, err := json.Marshal(bestEffortTerms{
		UserID: r.UserID, Name: r.Name, Flavor: [2]string{r.Flavor.ID, r.Flavor.Name}, Image: [2]string{r.Image.ID, r.Image.Name},
		VCPUs: r.Shape.VCPUs, MemoryMB: r.Shape.MemoryMB, DiskGB: r.Shape.DiskGB, Custom: r.Shape.Custom, Duration: r.Duration,
		Parallel: r.Parallel, Networks: r.Networks, KeyName: r.KeyName, Metadata: r.Metadata, Trust: r.Trust,
		Keyed: r.Key != "",
	})
	key := r.Key
	if key == "" {
		key = r.ID // which nobody else has
	}
	return bestEffortRow{
		ID: r.ID, ProjectID: r.ProjectID, RequestKey: key, BodyHash: r.BodyHash, CreatedAt: int64(r.Created),
		CancelledAt: int64(r.Cancelled), OverAt: int64(r.Over), Terms: terms, UserData: userData,
	}, err
}

func (row *bestEffortRow) request() (state.Request, error) {
	var t bestEffortTerms
	if err := json.Unmarshal(row.Terms, &t); err != nil {
		return state.Request{}, fmt.Errorf("decode best-effort request %s: %w", row.ID, err)
	}
	r := state.Request{
		ID: row.ID, ProjectID: row.ProjectID, UserID: t.UserID, Name: t.Name, Place: row.Place, Created: span.Instant(row.CreatedAt),
		Flavor: state.Named{ID: t.Flavor[0], Name: t.Flavor[1]}, Image: state.Named{ID: t.Image[0], Name: t.Image[1]},
		Shape:    resource.Vector{VCPUs: t.VCPUs, MemoryMB: t.MemoryMB, DiskGB: t.DiskGB, Custom: t.Custom},
		Duration: t.Duration, Parallel: t.Parallel, Networks: t.Networks, KeyName: t.KeyName, Metadata: t.Metadata,
		Trust: t.Trust, BodyHash: row.BodyHash, Cancelled: span.Instant(row.CancelledAt), Over: span.Instant(row.OverAt),
	}
	if t.Keyed {
		r.Key = row.RequestKey
	}
	return r, nil
}

func rowsOfVMs(request string, vms []state.VM) (rows []bestEffortVMRow, err error) {
	for _, v := range vms {
		state := bestEffortVM{
			Phase: v.Phase, Node: v.Node, Since: v.Since, Until: v.Until, Ran: v.Ran, Server: v.Server, Attempt: v.Attempt, Asked: v.Asked,
			Deadline: v.Deadline, Held: (*bestEffortHeld)(v.Held), Then: v.Then, Failures: v.Failures, RetryAt: v.RetryAt, Avoids: v.Avoids,
			Released: v.Released, Reason: v.Reason,
		}
		text, err := json.Marshal(state)
		if err != nil {
			return nil, err
		}
		rows = append(rows, bestEffortVMRow{ID: v.ID, RequestID: request, Number: v.Number, Phase: string(v.Phase), Server: v.Server, State: text})
	}
	return rows, nil
}

func (row *bestEffortVMRow) vm() (state.VM, error) {
	var s bestEffortVM
	if err := json.Unmarshal(row.State, &s); err != nil {
		return state.VM{}, fmt.Errorf("decode VM %s of best-effort work: %w", row.ID, err)
	}
	return state.VM{
		ID: row.ID, Number: row.Number, Phase: s.Phase, Node: s.Node, Since: s.Since, Until: s.Until, Ran: s.Ran, Server: s.Server,
		Attempt: s.Attempt, Asked: s.Asked, Deadline: s.Deadline, Held: (*state.Held)(s.Held), Then: s.Then, Failures: s.Failures,
		RetryAt: s.RetryAt, Avoids: s.Avoids, Released: s.Released, Reason: s.Reason,
	}, nil
}
