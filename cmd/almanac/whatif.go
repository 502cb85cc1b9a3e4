package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/whatif"
)

func (p *process) whatIfCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "whatif",
		Short: "Answer a question from a file, without a server",
		Long: `Answer a question from a file with the code that serves the cloud.

Exit codes: 0 yes; 5 no (the answer is printed too); 2 the input makes no sense (one
line on standard error names the field).`,
	}
	group.AddCommand(p.whatIfFitCommand(), p.whatIfScheduleCommand(), p.whatIfStageCommand(), p.whatIfPowerCommand(), p.whatIfPackCommand())
	return group
}

func fitFields(a whatif.FitAnswer) []field {
	candidates := each(a.Candidates, func(c whatif.FitCandidate) string {
		return fmt.Sprintf("%d: %d free in [%d, %d)", c.Start, c.Free, c.Begin, c.End)
	})
	slots := each(a.Slots, func(s whatif.FitSlot) string { return fmt.Sprintf("%d: busy %s", s.Time, numbers(s.Busy)) })
	return []field{
		{"Accepted", a.Accepted, inLists}, {"Reason", a.Reason, inLists}, {"Start", a.Start, inLists}, {"End", a.End, inLists},
		{"Hosts", numbers(a.Hosts), inLists}, {"Candidates", strings.Join(candidates, "; "), inLists},
		{"Slots", strings.Join(slots, "; "), inLists},
	}
}

func numbers(list []int) string { return strings.Trim(fmt.Sprint(list), "[]") }

func (p *process) whatIfFitCommand() *cobra.Command {
	return whatIf(p, &cobra.Command{
		Use:   "fit",
		Short: "Find out when and where a number of hosts is free (paper 003)",
		Long: `Find out when and where a number of hosts is free for a duration before a deadline,
next to existing claims. Times are whole numbers of any unit. The answer has every
feasible start with its availability rectangle, and the slots after booking.`,
		Example: "  almanac whatif fit --input docs/examples/whatif/fit.json -f json",
	}, fitFields, func(question io.Reader) (whatif.FitAnswer, bool, error) {
		answer, err := whatif.Fit(question)
		return answer, answer.Accepted, err
	})
}

// whatIf completes c: it answers the question in a file. answer also reports whether the
// answer is yes.
func whatIf[T any](p *process, c *cobra.Command, all columns[T], answer func(question io.Reader) (T, bool, error)) *cobra.Command {
	input := ""
	c.Args = cobra.NoArgs
	c.RunE = func(*cobra.Command, []string) error {
		out, err := newPrinter(p, all, inShows)
		if err != nil {
			return err
		}
		question, err := p.open(input)
		if err != nil {
			return err
		}
		defer question.Close()
		found, yes, err := answer(question)
		if err != nil {
			return err
		}
		if err := out.one(found, found); err != nil {
			return err
		}
		if !yes {
			return &outcome{code: exitNoRoom}
		}
		return nil
	}
	c.Flags().StringVar(&input, "input", "", "file with the question as JSON; - is standard input")
	return c
}

// open opens the input of a question.
func (p *process) open(path string) (io.ReadCloser, error) {
	switch path {
	case "":
		return nil, fault.Field("--input", "is required: the file with the question")
	case "-":
		return io.NopCloser(p.stdin), nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "--input", Message: "cannot be read", Err: err}
	}
	return file, nil
}
