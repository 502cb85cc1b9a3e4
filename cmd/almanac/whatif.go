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

Exit codes: 0 yes; 5 no, and the answer is printed all the same; 2 the input makes
no sense, and one line on standard error names the field.`,
	}
	group.AddCommand(p.whatIfFitCommand(), p.whatIfScheduleCommand(), p.whatIfStageCommand(), p.whatIfPowerCommand(), p.whatIfPackCommand())
	return group
}

var fitColumns = []column[whatif.FitAnswer]{
	{"Accepted", func(a whatif.FitAnswer) any { return a.Accepted }, inLists},
	{"Reason", func(a whatif.FitAnswer) any { return a.Reason }, inLists},
	{"Start", func(a whatif.FitAnswer) any { return a.Start }, inLists},
	{"End", func(a whatif.FitAnswer) any { return a.End }, inLists},
	{"Hosts", func(a whatif.FitAnswer) any { return numbers(a.Hosts) }, inLists},
	{"Candidates", func(a whatif.FitAnswer) any {
		var lines []string
		for _, c := range a.Candidates {
			lines = append(lines, fmt.Sprintf("%d: %d free in [%d, %d)", c.Start, c.Free, c.Begin, c.End))
		}
		return strings.Join(lines, "; ")
	}, inLists},
	{"Slots", func(a whatif.FitAnswer) any {
		var lines []string
		for _, s := range a.Slots {
			lines = append(lines, fmt.Sprintf("%d: busy %s", s.Time, numbers(s.Busy)))
		}
		return strings.Join(lines, "; ")
	}, inLists},
}

func numbers(list []int) string { return strings.Trim(fmt.Sprint(list), "[]") }

func (p *process) whatIfFitCommand() *cobra.Command {
	return whatIf(p, &cobra.Command{
		Use:   "fit",
		Short: "When and where a number of hosts can be had (paper 003)",
		Long: `When and where a number of hosts can be had for a duration before a deadline, beside
claims that are there. Times are whole numbers of any unit. The answer has every
feasible start with its availability rectangle, and the slots after booking.`,
		Example: "  almanac whatif fit --input docs/examples/whatif/fit.json -f json",
	}, fitColumns, func(question io.Reader) (whatif.FitAnswer, bool, error) {
		answer, err := whatif.Fit(question)
		return answer, answer.Accepted, err
	})
}

// whatIf makes c a command that answers the question in a file. answer says whether the
// answer is yes.
func whatIf[T any](p *process, c *cobra.Command, columns []column[T], answer func(question io.Reader) (T, bool, error)) *cobra.Command {
	input := ""
	c.Args = cobra.NoArgs
	c.RunE = func(*cobra.Command, []string) error {
		out, err := newPrinter(p, columns, inShows)
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
		return nil, fault.Field("--input", "is needed: the file with the question")
	case "-":
		return io.NopCloser(p.stdin), nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "--input", Message: "cannot be read", Err: err}
	}
	return file, nil
}
