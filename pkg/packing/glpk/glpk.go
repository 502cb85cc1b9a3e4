// SPDX-License-Identifier: Apache-2.0

// Package glpk solves linear programs with glpsol, the command of the GNU Linear
// Programming Kit. It is part of Debian's package glpk-utils.
package glpk

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/packing"
)

// Solver runs glpsol, each time in a new temporary folder.
type Solver struct {
	Program string        // empty is glpsol on the PATH
	Limit   time.Duration // time for one program, in whole seconds; 0 means no limit
}

var _ packing.Solver = Solver{}

// Find returns an Unavailable fault if glpsol is not installed.
func (s Solver) Find() error {
	if _, err := exec.LookPath(cmp.Or(s.Program, "glpsol")); err != nil {
		return &fault.Error{Kind: fault.Unavailable, Message: "glpsol is required and not installed: on Debian it is in the package glpk-utils", Err: err}
	}
	return nil
}

// Solve implements packing.Solver. When the Limit is reached, it returns the best solution found,
// with Proven false. If there is none, the error is a *packing.Infeasible, with Proven false too.
// The end of ctx ends glpsol at once, without a result.
func (s Solver) Solve(ctx context.Context, l *packing.Linear) (packing.Optimum, error) {
	if err := s.Find(); err != nil {
		return packing.Optimum{}, err
	}
	dir, err := os.MkdirTemp("", "almanac-glpk-")
	if err != nil {
		return packing.Optimum{}, fmt.Errorf("make a folder for glpsol: %w", err)
	}
	defer os.RemoveAll(dir)
	program, answer := filepath.Join(dir, "program.lp"), filepath.Join(dir, "answer.txt")
	if err := os.WriteFile(program, write(l), 0o600); err != nil {
		return packing.Optimum{}, fmt.Errorf("write the program for glpsol: %w", err)
	}
	arguments := []string{"--lp", program, "--write", answer}
	if l.Whole == nil {
		// If the presolver of linear programs finds that there is no solution, the answer
		// does not show it.
		arguments = append(arguments, "--nopresol")
	}
	if s.Limit > 0 {
		arguments = append(arguments, "--tmlim", strconv.Itoa(int(max(1, s.Limit/time.Second))))
	}
	run := exec.CommandContext(ctx, cmp.Or(s.Program, "glpsol"), arguments...)
	if said, err := run.CombinedOutput(); err != nil {
		return packing.Optimum{}, fmt.Errorf("run glpsol: %w: %s", cmp.Or(ctx.Err(), err), last(said))
	}
	found, err := os.ReadFile(answer)
	if err != nil {
		return packing.Optimum{}, fmt.Errorf("read the answer of glpsol: %w", err)
	}
	return read(found, l)
}

// last returns the last line of glpsol's output.
func last(said []byte) []byte {
	lines := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
	return lines[len(lines)-1]
}

// write returns the program in CPLEX's format of linear programs.
func write(l *packing.Linear) []byte {
	var b bytes.Buffer
	b.WriteString("Maximize\n value:")
	sum(&b, l.Objective)
	b.WriteString("\nSubject To\n")
	for i, row := range l.Rows {
		fmt.Fprintf(&b, " r%d:", i)
		sum(&b, row.Terms)
		sign := "<="
		if row.Exact {
			sign = "="
		}
		fmt.Fprintf(&b, " %s %s\n", sign, number(row.Is))
	}
	b.WriteString("Bounds\n")
	for v := range l.Variables {
		if l.Most != nil && l.Most[v] > 0 {
			fmt.Fprintf(&b, " 0 <= x%d <= %s\n", v, number(l.Most[v]))
		} else {
			fmt.Fprintf(&b, " x%d >= 0\n", v)
		}
	}
	if l.Whole != nil {
		b.WriteString("Binary\n")
		for v, whole := range l.Whole {
			if whole {
				fmt.Fprintf(&b, " x%d\n", v)
			}
		}
	}
	b.WriteString("End\n")
	return b.Bytes()
}

// sum writes the terms in the form of CPLEX, at most eight in a line.
func sum(b *bytes.Buffer, terms []packing.Term) {
	for i, t := range terms {
		if i%8 == 7 {
			b.WriteString("\n ")
		}
		fmt.Fprintf(b, " %+.17g x%d", t.Factor, t.Variable)
	}
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 17, 64) }

// read parses the answer of glpsol (GLPK's reference manual, glp_write_sol and glp_write_mip): a
// line "s bas|mip …" with status and objective, and a line "j …" for each column. Columns are
// numbered in the order in which the program first names the variables.
func read(answer []byte, l *packing.Linear) (packing.Optimum, error) {
	order := columns(l)
	found := packing.Optimum{Values: make([]float64, l.Variables)}
	solved := false
	lines := bufio.NewScanner(bytes.NewReader(answer))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		var err error
		switch fields[0] {
		case "s":
			solved = true
			err = status(fields, &found)
		case "j":
			err = column(fields, order, &found)
		}
		if err != nil {
			return packing.Optimum{}, err
		}
	}
	if !solved {
		return packing.Optimum{}, errors.New("the answer of glpsol has no status")
	}
	return found, nil
}

// status parses "s bas rows columns primal dual objective", where primal and dual are u for
// unknown, f for feasible or n for no solution, or "s mip rows columns status objective", where
// status may also be o for optimal.
func status(fields []string, found *packing.Optimum) error {
	if len(fields) < 6 {
		return fmt.Errorf("the answer of glpsol has the status %q", strings.Join(fields, " "))
	}
	basic := fields[1] == "bas"
	switch primal, dual := fields[4], fields[5]; {
	case primal == "n":
		return &packing.Infeasible{Reason: "the linear program has no solution", Proven: true}
	case basic && primal == "f" && dual == "n":
		return errors.New("the linear program has no largest solution")
	case primal == "o" || basic && primal == "f" && dual == "f":
		found.Proven = true
	case primal != "f":
		return &packing.Infeasible{Reason: "glpsol has found no solution in its time"}
	}
	objective := fields[len(fields)-1]
	value, err := strconv.ParseFloat(objective, 64)
	if err != nil {
		return fmt.Errorf("the answer of glpsol has the objective %q: %w", objective, err)
	}
	found.Value = value
	return nil
}

// column parses "j column value" of an integer program, or "j column status value dual" of
// a linear one.
func column(fields []string, order []int, found *packing.Optimum) error {
	value := 2
	if len(fields) == 5 {
		value = 3
	}
	if len(fields) <= value {
		return fmt.Errorf("the answer of glpsol has the column %q", strings.Join(fields, " "))
	}
	at, err := strconv.Atoi(fields[1])
	if err != nil || at < 1 || at > len(order) {
		return fmt.Errorf("the answer of glpsol has the column %q", fields[1])
	}
	is, err := strconv.ParseFloat(fields[value], 64)
	if err != nil {
		return fmt.Errorf("the answer of glpsol has the value %q: %w", fields[value], err)
	}
	found.Values[order[at-1]] = is
	return nil
}

// columns returns the variables in the order in which the program first names them, which
// is the order of glpsol's columns.
func columns(l *packing.Linear) []int {
	seen := make([]bool, l.Variables)
	order := make([]int, 0, l.Variables)
	see := func(v int) {
		if !seen[v] {
			seen[v] = true
			order = append(order, v)
		}
	}
	for _, t := range l.Objective {
		see(t.Variable)
	}
	for _, row := range l.Rows {
		for _, t := range row.Terms {
			see(t.Variable)
		}
	}
	for v := range l.Variables {
		see(v)
	}
	return order
}
