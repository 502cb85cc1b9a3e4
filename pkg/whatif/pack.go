// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/packing"
	"github.com/almanac-cloud/almanac/pkg/strictjson"
)

// PackQuestion asks for the placement of jobs on hosts with the largest smallest yield (paper 002).
type PackQuestion struct {
	Hosts PackHosts `json:"hosts"`
	Jobs  []PackJob `json:"jobs"`
	// Algorithm is one of packing.Names; empty means mcb8.
	Algorithm string `json:"algorithm"`
	// Current contains the present hosts of each job's tasks, by the name of the job; a job without
	// an entry is new.
	Current map[string][]int `json:"current"`
	// MigrationBudget is how much memory may be moved, Migrations how many tasks; at most one of
	// them may be set. If neither is set, exact and adapt move nothing.
	MigrationBudget *float64 `json:"migration_budget"`
	Migrations      *int     `json:"migrations"`
	// Seed is the seed of the random numbers of rrnd and rrnz; nil means 1.
	Seed *int64 `json:"seed"`
}

// PackHosts are the hosts: in JSON a list of them, or a number of hosts with CPU 1 and memory 1
// each.
type PackHosts []PackHost

// PackHost is the capacity of a host, in the units of the jobs' needs.
type PackHost struct {
	CPU    *float64 `json:"cpu"`
	Memory *float64 `json:"memory"`
}

// PackJob is a job with the needs of each task; nil Tasks means one task.
type PackJob struct {
	ID     string   `json:"id"`
	CPU    *float64 `json:"cpu"`
	Memory *float64 `json:"memory"`
	Tasks  *int     `json:"tasks"`
}

// PackAnswer contains the placement and the yields, or the reason why there is none.
type PackAnswer struct {
	Feasible bool   `json:"feasible"`
	Reason   string `json:"reason,omitempty"`
	// MinYield is the minimum yield of the placement, AverageYield the average over jobs after the
	// second phase, and UpperBound a yield that no placement exceeds.
	MinYield     *float64 `json:"min_yield,omitempty"`
	AverageYield *float64 `json:"average_yield,omitempty"`
	UpperBound   float64  `json:"upper_bound"`
	// Placement contains the host of each task, and Yields the yield, by the name of the job.
	Placement map[string][]int   `json:"placement,omitempty"`
	Yields    map[string]float64 `json:"yields,omitempty"`
	// AverageBy is the method of the second phase if jobs have several tasks: "linear program",
	// which yields the largest average, or "greedy".
	AverageBy string `json:"average_by,omitempty"`
	// Moved is how much of the budget the placement uses; nil means that there is no current
	// placement.
	Moved *float64 `json:"moved,omitempty"`
	// Unproven is the reason why exact cannot exclude a better placement; empty if it can.
	Unproven string `json:"unproven,omitempty"`
}

// The limits of a question.
const (
	mostPackHosts = 4096
	mostPackTasks = 65_536
	mostNeed      = 1e9
)

// form implements forms: a number or a list.
func (PackHosts) form(raw json.RawMessage) reflect.Type {
	if raw[0] == '[' {
		return reflect.TypeFor[[]PackHost]()
	}
	return reflect.TypeFor[int]()
}

// UnmarshalJSON reads a number or a list.
func (h *PackHosts) UnmarshalJSON(raw []byte) error {
	if strings.HasPrefix(strings.TrimSpace(string(raw)), "[") {
		return json.Unmarshal(raw, (*[]PackHost)(h))
	}
	n := 0
	if err := json.Unmarshal(raw, &n); err != nil {
		return err
	}
	if n < 1 || n > mostPackHosts {
		return nil // check reports it
	}
	*h = slices.Repeat([]PackHost{{new(1.0), new(1.0)}}, n)
	return nil
}

// Pack answers the question in r. chance returns the source of random numbers for a seed; tools are
// the solver and the limits. Errors are Invalid faults that name the field, or the reason why the
// algorithm could not run; if there is no placement, the answer states that, and the error is nil.
func Pack(ctx context.Context, r io.Reader, tools packing.Tools, chance func(seed int64) packing.Chance) (PackAnswer, error) {
	var q PackQuestion
	if err := read(r, &q); err != nil {
		return PackAnswer{}, err
	}
	p, err := q.problem()
	if err != nil {
		return PackAnswer{}, err
	}
	if q.Seed == nil {
		q.Seed = new(int64(1))
	}
	tools.Chance = chance(*q.Seed)
	algorithm, err := tools.Named(q.Algorithm)
	if err != nil {
		return PackAnswer{}, err
	}
	answer := PackAnswer{UpperBound: p.Bound()}
	found, err := tools.Solve(ctx, p, algorithm)
	if infeasible, is := errors.AsType[*packing.Infeasible](err); is {
		answer.Reason = infeasible.Reason
		return answer, nil
	} else if err != nil {
		return PackAnswer{}, err
	}
	if answer.Reason = q.tooMuch(p, found.Placement); answer.Reason != "" {
		return answer, nil
	}
	answer.fill(p, found)
	return answer, nil
}

// bounded reports whether the algorithm itself observes a budget.
func (q *PackQuestion) bounded() bool { return q.Algorithm == "exact" || q.Algorithm == "adapt" }

// tooMuch returns an error text if the placement of an algorithm that does not observe a budget
// moves more than the budget; otherwise "".
func (q *PackQuestion) tooMuch(p *packing.Problem, at packing.Placement) string {
	if q.MigrationBudget == nil && q.Migrations == nil || q.bounded() {
		return ""
	}
	if moved := p.Moved(at); moved > p.Budget+1e-9 {
		return fmt.Sprintf("the placement of %s moves %.6g, which is more than the budget of %.6g; exact and adapt keep to a budget", q.Algorithm, moved, p.Budget)
	}
	return ""
}

// problem validates the question and returns its problem.
func (q *PackQuestion) problem() (*packing.Problem, error) {
	if q.Algorithm == "" {
		q.Algorithm = "mcb8"
	}
	if !slices.Contains(packing.Names(), q.Algorithm) {
		return nil, fault.Field("algorithm", "%s", fault.Unknown("algorithm", q.Algorithm, packing.Names()))
	}
	p := &packing.Problem{}
	if err := q.readHosts(p); err != nil {
		return nil, err
	}
	if err := q.readJobs(p); err != nil {
		return nil, err
	}
	if err := q.readCurrent(p); err != nil {
		return nil, err
	}
	return p, p.Check()
}

// readHosts reads the hosts of the question into p; an Invalid fault names the field that is wrong.
func (q *PackQuestion) readHosts(p *packing.Problem) error {
	if n := len(q.Hosts); n < 1 || n > mostPackHosts {
		return fault.Field("hosts", "must be from 1 to %d of them", mostPackHosts)
	}
	for i, h := range q.Hosts {
		path := fmt.Sprintf("hosts[%d]", i)
		switch {
		case h.CPU == nil || !(*h.CPU > 0 && *h.CPU <= mostNeed):
			return fault.Field(path+".cpu", "is required, and must be more than 0 and at most %g", mostNeed)
		case h.Memory == nil || !(*h.Memory > 0 && *h.Memory <= mostNeed):
			return fault.Field(path+".memory", "is required, and must be more than 0 and at most %g", mostNeed)
		}
		p.Hosts = append(p.Hosts, packing.Host{CPU: *h.CPU, Memory: *h.Memory})
	}
	return nil
}

// readJobs adds the jobs to the problem. No task may need more than the largest host has, which is
// 1 with the paper's hosts.
func (q *PackQuestion) readJobs(p *packing.Problem) error {
	largest := packing.Host{}
	for _, h := range p.Hosts {
		largest = packing.Host{CPU: max(largest.CPU, h.CPU), Memory: max(largest.Memory, h.Memory)}
	}
	if len(q.Jobs) == 0 {
		return fault.Field("jobs", "must be at least 1")
	}
	tasks := 0
	for i, j := range q.Jobs {
		path := fmt.Sprintf("jobs[%d]", i)
		if j.Tasks == nil {
			j.Tasks = new(1)
		}
		switch {
		case j.CPU == nil || !(*j.CPU > 0 && *j.CPU <= largest.CPU):
			return fault.Field(path+".cpu", "is required, and must be more than 0 and at most %g, which is what the largest host has", largest.CPU)
		case j.Memory == nil || !(*j.Memory >= 0 && *j.Memory <= largest.Memory):
			return fault.Field(path+".memory", "is required, and must be from 0 to %g, which is what the largest host has", largest.Memory)
		case *j.Tasks < 1 || *j.Tasks > mostPackTasks:
			return fault.Field(path+".tasks", "must be from 1 to %d", mostPackTasks)
		}
		if tasks += *j.Tasks; tasks > mostPackTasks {
			return fault.Field("jobs", "has more than %d tasks", mostPackTasks)
		}
		p.Jobs = append(p.Jobs, packing.Job{ID: j.ID, CPU: *j.CPU, Memory: *j.Memory, Tasks: *j.Tasks})
	}
	return nil
}

// readCurrent reads the present placement and the budget of migrations into p.
func (q *PackQuestion) readCurrent(p *packing.Problem) error {
	switch {
	case q.MigrationBudget != nil && q.Migrations != nil:
		return fault.Field("migrations", "cannot be combined with migration_budget")
	case q.Migrations != nil && *q.Migrations < 0:
		return fault.Field("migrations", "must be 0 or more")
	case q.Migrations != nil:
		p.Price, p.Budget = slices.Repeat([]float64{1}, len(p.Jobs)), float64(*q.Migrations)
	case q.MigrationBudget != nil:
		p.Budget = *q.MigrationBudget
	}
	if q.Current == nil {
		return nil
	}
	p.Current = make(packing.Placement, len(p.Jobs))
	known := map[string]bool{}
	for i, j := range p.Jobs {
		known[j.ID] = true
		p.Current[i] = q.Current[j.ID]
	}
	for _, id := range slices.Sorted(maps.Keys(q.Current)) {
		if !known[id] {
			return fault.Field(strictjson.Under("current", id), "there is no job %q among jobs", id)
		}
	}
	return nil
}

// fill enters the placement that was found, with its yields and how many jobs move.
func (a *PackAnswer) fill(p *packing.Problem, found packing.Outcome) {
	a.Feasible, a.Unproven = true, found.Unproven
	a.MinYield, a.AverageYield = new(found.MinYield), new(found.Average)
	a.Placement, a.Yields = map[string][]int{}, map[string]float64{}
	for i, j := range p.Jobs {
		a.Placement[j.ID], a.Yields[j.ID] = found.Placement[i], found.Yields[i]
		if j.Tasks > 1 {
			a.AverageBy = "greedy"
		}
	}
	if found.ByProgram {
		a.AverageBy = "linear program"
	}
	if p.Current != nil {
		a.Moved = new(p.Moved(found.Placement))
	}
}
