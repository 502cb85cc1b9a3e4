package store

import (
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// packingRun is a rebalance.Run as it is stored.
type packingRun struct {
	By       string            `json:"by"`
	Status   rebalance.Status  `json:"status"`
	Reason   string            `json:"reason,omitempty"`
	Created  span.Instant      `json:"created"`
	Ended    span.Instant      `json:"ended,omitempty"`
	Plan     packingPlan       `json:"plan"`
	Progress []packingProgress `json:"progress"`
	Yield    float64           `json:"yield,omitempty"`
}

type packingPlan struct {
	At        span.Instant    `json:"at"`
	ID        string          `json:"id"`
	Options   packingOptions  `json:"options"`
	Algorithm string          `json:"algorithm,omitempty"`
	Hosts     int             `json:"hosts"`
	Instances int             `json:"instances"`
	Movable   int             `json:"movable"`
	Measured  int             `json:"measured,omitempty"`
	Before    float64         `json:"before"`
	After     float64         `json:"after"`
	Bound     float64         `json:"bound"`
	Moves     []packingMove   `json:"moves"`
	Emptied   []string        `json:"emptied,omitempty"`
	Kept      []packingStay   `json:"kept,omitempty"`
	Stays     []packingStay   `json:"stays,omitempty"`
	Beyond    []packingBeyond `json:"beyond,omitempty"`
	Reasons   []string        `json:"reasons,omitempty"`
}

type packingOptions struct {
	Migrations  int     `json:"migrations,omitempty"`
	MemoryMB    int64   `json:"memory_mb,omitempty"`
	Algorithm   string  `json:"algorithm,omitempty"`
	Consolidate int     `json:"consolidate,omitempty"`
	Floor       float64 `json:"floor,omitempty"`
	Gain        float64 `json:"gain,omitempty"`
}

type packingMove struct {
	Instance  string  `json:"instance"`
	Name      string  `json:"name"`
	ProjectID string  `json:"project_id"`
	From      string  `json:"from"`
	To        string  `json:"to"`
	VCPUs     int64   `json:"vcpus"`
	MemoryMB  int64   `json:"memory_mb"`
	Need      float64 `json:"need"`
	Yield     float64 `json:"yield"`
	Between   bool    `json:"between,omitempty"`
}

type packingStay struct {
	Instance string `json:"instance,omitempty"`
	Host     string `json:"host"`
	Reason   string `json:"reason"`
}

type packingBeyond struct {
	Host   string  `json:"host"`
	Yield  float64 `json:"yield"`
	Reason string  `json:"reason"`
}

type packingProgress struct {
	State   rebalance.State `json:"state"`
	Reason  string          `json:"reason,omitempty"`
	Begun   span.Instant    `json:"begun,omitempty"`
	Aborted span.Instant    `json:"aborted,omitempty"`
	Ended   span.Instant    `json:"ended,omitempty"`
	Before  string          `json:"before,omitempty"`
	Told    int             `json:"told,omitempty"`
}

func packingRunOf(r rebalance.Run) packingRun {
	return packingRun{
		By: r.By, Status: r.Status, Reason: r.Reason, Created: r.Created, Ended: r.Ended, Yield: r.Yield, Plan: packingPlanOf(r.Plan),
		Progress: converted(r.Progress, func(p rebalance.Progress) packingProgress { return packingProgress(p) }),
	}
}

func packingPlanOf(p rebalance.Plan) packingPlan {
	stay := func(s rebalance.Stay) packingStay { return packingStay(s) }
	return packingPlan{
		At: p.At, ID: p.ID, Options: packingOptions(p.Options), Algorithm: p.Algorithm, Hosts: p.Hosts, Instances: p.Instances,
		Movable: p.Movable, Measured: p.Measured, Before: p.Before, After: p.After, Bound: p.Bound, Emptied: p.Emptied, Reasons: p.Reasons,
		Moves: converted(p.Moves, func(m rebalance.Move) packingMove { return packingMove(m) }),
		Kept:  converted(p.Kept, stay), Stays: converted(p.Stays, stay),
		Beyond: converted(p.Beyond, func(b rebalance.Beyond) packingBeyond { return packingBeyond(b) }),
	}
}

func (r packingRun) run(id string) rebalance.Run {
	return rebalance.Run{
		ID: id, By: r.By, Status: r.Status, Reason: r.Reason, Created: r.Created, Ended: r.Ended, Yield: r.Yield, Plan: r.Plan.plan(),
		Progress: converted(r.Progress, func(p packingProgress) rebalance.Progress { return rebalance.Progress(p) }),
	}
}

func (p packingPlan) plan() rebalance.Plan {
	stay := func(s packingStay) rebalance.Stay { return rebalance.Stay(s) }
	return rebalance.Plan{
		At: p.At, ID: p.ID, Options: rebalance.Options(p.Options), Algorithm: p.Algorithm, Hosts: p.Hosts, Instances: p.Instances,
		Movable: p.Movable, Measured: p.Measured, Before: p.Before, After: p.After, Bound: p.Bound, Emptied: p.Emptied, Reasons: p.Reasons,
		Moves: converted(p.Moves, func(m packingMove) rebalance.Move { return rebalance.Move(m) }),
		Kept:  converted(p.Kept, stay), Stays: converted(p.Stays, stay),
		Beyond: converted(p.Beyond, func(b packingBeyond) rebalance.Beyond { return rebalance.Beyond(b) }),
	}
}
