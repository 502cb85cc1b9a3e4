// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/packing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Options are what an operator requires of a plan.
type Options struct {
	// Migrations is the largest number of moves, and MemoryMB the largest sum of the memory that
	// they transfer; 0 means no limit.
	Migrations int   `json:"migrations,omitempty"`
	MemoryMB   int64 `json:"memory_mb,omitempty"`
	// Algorithm is adapt or exact; empty means exact for small problems, otherwise adapt.
	Algorithm string `json:"algorithm,omitempty"`
	// Consolidate is the number of hosts that the plan should empty, the least efficient first,
	// instead of raising the yield. 0 means that it raises the yield; AllThatCan means as many as
	// possible.
	Consolidate int `json:"consolidate,omitempty"`
	// Floor is the smallest yield that consolidation may cause; 0 means the current one.
	Floor float64 `json:"floor,omitempty"`
	// Gain is the smallest increase of the smallest yield for which the plan moves anything.
	Gain float64 `json:"gain,omitempty"`
}

// AllThatCan is the value of Options.Consolidate that means no limit.
const AllThatCan = math.MaxInt

// Algorithms are the values of Options.Algorithm.
var Algorithms = []string{"adapt", "exact"}

// Check refuses invalid options. The fault names the field as in the API.
func (o Options) Check() error {
	switch {
	case o.Migrations < 0:
		return fault.Field("migrations", "must be 0 or more")
	case o.MemoryMB < 0:
		return fault.Field("memory_mb", "must be 0 or more")
	case o.Consolidate < 0:
		return fault.Field("consolidate", "must be 0 or more")
	case !(o.Floor >= 0 && o.Floor <= 1):
		return fault.Field("floor", "must be from 0 to 1")
	case !(o.Gain >= 0 && o.Gain <= 1):
		return fault.Field("gain", "must be from 0 to 1")
	case o.Algorithm != "" && !slices.Contains(Algorithms, o.Algorithm):
		return fault.Field("algorithm", "%s", fault.Unknown("algorithm", o.Algorithm, Algorithms))
	case o.Floor > 0 && o.Consolidate == 0:
		return fault.Field("floor", "is for consolidation only")
	}
	return nil
}

// Plan is a packing plan: moves and their expected effect.
type Plan struct {
	At span.Instant `json:"at"`
	// ID is the same for plans with the same moves.
	ID        string  `json:"id"`
	Options   Options `json:"options"`
	Algorithm string  `json:"algorithm,omitempty"` // the algorithm used
	// Hosts is the number of hosts whose yields count, Instances the number of all instances on
	// hosts that are up, Movable the number of jobs that can be moved, and Measured the number of
	// jobs whose need was measured.
	Hosts     int `json:"hosts"`
	Instances int `json:"instances"`
	Movable   int `json:"movable"`
	Measured  int `json:"measured,omitempty"`
	// Before is the current smallest yield, After the smallest yield after all moves, and Bound a
	// yield that no placement exceeds, whatever the budget.
	Before  float64  `json:"before"`
	After   float64  `json:"after"`
	Bound   float64  `json:"bound"`
	Moves   []Move   `json:"moves"`
	Emptied []string `json:"emptied,omitempty"` // names of hosts
	// Kept are the hosts that should have become empty but cannot, with the reasons.
	Kept     []Stay     `json:"kept,omitempty"`
	Stays    []Stay     `json:"stays,omitempty"`
	Excluded []Excluded `json:"excluded,omitempty"`
	Reasons  []string   `json:"reasons,omitempty"` // why the plan is as it is, in sentences
}

// Move is a live migration.
type Move struct {
	Instance  string  `json:"instance"`
	Name      string  `json:"name"`
	ProjectID string  `json:"project_id"`
	From      string  `json:"from"`
	To        string  `json:"to"`
	VCPUs     int64   `json:"vcpus"`
	MemoryMB  int64   `json:"memory_mb"`
	Need      float64 `json:"need"` // cores that it could use
	// Yield is the smallest yield after the move.
	Yield float64 `json:"yield"`
	// Between is true if the instance makes room on its host and moves on to another host later.
	Between bool `json:"between,omitempty"`
}

// Memory returns the memory that the moves transfer, in MB.
func (p *Plan) Memory() (sum int64) {
	for _, m := range p.Moves {
		sum += m.MemoryMB
	}
	return sum
}

// Plan returns the moves within the budget. It fails with an Invalid fault if the options are
// invalid. If no move helps, the plan has no moves. If ctx ends, Plan returns the best plan found
// so far.
func (s *Situation) Plan(ctx context.Context, o Options) (Plan, error) {
	if err := o.Check(); err != nil {
		return Plan{}, err
	}
	v := s.view()
	p := Plan{At: s.Now, Options: o, Hosts: len(v.hosts), Instances: v.all, Before: 1, After: 1, Bound: 1, Stays: v.stay, Excluded: v.excluded}
	for i := range v.jobs {
		if v.jobs[i].stays == "" {
			p.Movable++
		}
		if _, measured := s.Use[v.jobs[i].one.ID]; measured {
			p.Measured++
		}
	}
	problem := v.problem()
	if problem == nil {
		p.Reasons = append(p.Reasons, "no instance runs on a host that is up, enabled and on")
		p.ID = digest(p.Moves)
		return p, nil
	}
	p.Before, p.Bound = v.yield(v.now()), problem.Bound()
	p.After = p.Before
	var err error
	if o.Consolidate > 0 {
		err = v.consolidate(ctx, &p)
	} else {
		err = v.level(ctx, problem, &p)
	}
	p.ID = digest(p.Moves)
	return p, err
}

// digest returns an identifier that is equal for equal moves.
func digest(moves []Move) string {
	sum := sha256.New()
	for _, m := range moves {
		fmt.Fprintf(sum, "%s %s %s\n", m.Instance, m.From, m.To)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// rounds is the number of attempts to find a placement whose moves can be put in sequence.
const rounds = 8

// level plans to raise the smallest yield.
func (v *view) level(ctx context.Context, problem *packing.Problem, p *Plan) error {
	o := p.Options
	if p.Before >= 1 {
		p.Reasons = append(p.Reasons, "all instances already get all the CPU that they need")
		return nil
	}
	algorithm, name := v.algorithm(o)
	p.Algorithm = name
	v.price(problem, o)
	barred := map[[2]int]string{}
	problem.May = func(j, host int) bool { _, is := barred[[2]int{j, host}]; return !is && v.may(j, host) }
	ended := "" // why a search ended early
	for range rounds {
		found, err := algorithm(ctx, problem)
		if unproven, is := errors.AsType[*packing.Unproven](err); is {
			ended, err = unproven.Reason, nil
		}
		if infeasible, is := errors.AsType[*packing.Infeasible](err); is {
			p.Reasons = append(p.Reasons, infeasible.Reason)
			break
		} else if err != nil {
			return fmt.Errorf("plan migrations: %w", err)
		}
		at := make([]int, len(v.jobs))
		for i := range at {
			at[i] = found[i][0]
		}
		v.prune(at)
		done := v.order(at, o, nil)
		after := yieldOf(slices.Max(done.loads))
		if after > p.After+slack || after > p.After-slack && len(p.Moves) > len(done.moves) {
			p.After, p.Moves = after, done.moves
		}
		if len(done.dropped) == 0 || ctx.Err() != nil {
			break
		}
		for _, d := range done.dropped {
			barred[[2]int{d.job, d.to}] = d.why
		}
	}
	if p.After < p.Before+max(o.Gain, slack) {
		p.Moves, p.After = nil, p.Before
	}
	if ended == "" && ctx.Err() != nil {
		ended = "the time limit of the search was reached"
	}
	p.explain(ended)
	return nil
}

// explain adds the reasons why the plan does not achieve more. ended is the reason why the search
// ended early; empty if it did not.
func (p *Plan) explain(ended string) {
	if ended != "" && p.After < p.Bound-slack {
		p.Reasons = append(p.Reasons, ended+": there may be a better plan")
	}
	switch {
	case len(p.Moves) == 0 && p.Movable == 0:
		p.Reasons = append(p.Reasons, "no instance can be moved")
	case len(p.Moves) == 0:
		p.Reasons = append(p.Reasons, fmt.Sprintf("no moves within the budget raise the smallest yield by %.4g or more", p.Options.Gain))
	case p.After >= p.Bound-slack:
		p.Reasons = append(p.Reasons, "no placement has a higher smallest yield")
	case p.Options.Migrations > 0 && len(p.Moves) >= p.Options.Migrations:
		p.Reasons = append(p.Reasons, fmt.Sprintf("the budget of %d migrations is used up", p.Options.Migrations))
	}
}

// quick is the largest number of pairs of a job and a host for which the exact search is the
// default.
const quick = 60

// algorithm returns the algorithm of the options, or by the size of the problem, with its name.
func (v *view) algorithm(o Options) (packing.Algorithm, string) {
	exact := packing.Exact{Work: 1_000_000}
	if o.Algorithm == "exact" {
		exact.Work = 20_000_000
	}
	if name := cmp.Or(o.Algorithm, "exact"); name == "exact" && (o.Algorithm != "" || len(v.jobs)*len(v.hosts) <= quick) {
		return exact.Place, name
	}
	return packing.Adapt{}.Place, "adapt"
}

// price sets the budget and the price of each move so that a plan within the budget keeps both
// limits: with two limits, the price of a move is the larger of its fractions of them. The price of
// an instance that must stay exceeds the budget.
func (v *view) price(p *packing.Problem, o Options) {
	p.Price = make([]float64, len(v.jobs))
	total := 0.0
	for i := range v.jobs {
		j := &v.jobs[i]
		switch {
		case o.Migrations > 0 && o.MemoryMB > 0:
			p.Price[i] = max(1/float64(o.Migrations), j.memory/float64(o.MemoryMB))
		case o.MemoryMB > 0:
			p.Price[i] = j.memory
		default:
			p.Price[i] = 1
		}
		if j.stays == "" {
			total += p.Price[i]
		}
	}
	switch {
	case o.Migrations > 0 && o.MemoryMB > 0:
		p.Budget = 1
	case o.MemoryMB > 0:
		p.Budget = float64(o.MemoryMB)
	case o.Migrations > 0:
		p.Budget = float64(o.Migrations)
	default:
		p.Budget = total
	}
	for i := range v.jobs {
		if v.jobs[i].stays != "" {
			p.Price[i] = 2*p.Budget + 1
		}
	}
}

// prune cancels moves without a benefit, those with the most memory first.
func (v *view) prune(at []int) {
	var gone []int
	for i, h := range at {
		if h != v.jobs[i].host {
			gone = append(gone, i)
		}
	}
	slices.SortStableFunc(gone, func(a, b int) int { return cmp.Compare(v.jobs[b].memory, v.jobs[a].memory) })
	least := v.yield(at)
	for _, i := range gone {
		there := at[i]
		at[i] = v.jobs[i].host
		if v.yield(at) < least-slack || !v.fits(at) {
			at[i] = there
		}
	}
}
