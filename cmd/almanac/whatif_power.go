package main

import (
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/whatif"
)

var powerColumns = []column[whatif.PowerAnswer]{
	{"On", func(a whatif.PowerAnswer) any { return lines(a.On) }, inLists},
	{"Off", func(a whatif.PowerAnswer) any { return lines(a.Off) }, inLists},
	{"Reasons", func(a whatif.PowerAnswer) any {
		return lines(each(slices.Sorted(maps.Keys(a.Reasons)), func(host string) string { return host + ": " + a.Reasons[host] }))
	}, inLists},
}

func (p *process) whatIfPowerCommand() *cobra.Command {
	return whatIf(p, &cobra.Command{
		Use:   "power",
		Short: "Which hosts are switched on and off (paper 004)",
		Long: `Which hosts are switched on and off, by the rules of the paper alone: none of the
safety limits of a cloud holds.

As many hosts stay on as are forecast to be in use, or are reserved, whichever is
more. reserved names the hosts with a reservation that runs or begins within the
horizon: they are switched on first, and never off. Then the most efficient ones
are switched on as long as too few are on, or the least efficient ones off that
have been idle for idle_needed measurements as long as too many are. A host that is
on and has been idle for 0 measurements is busy. Where they are not given, horizon
is 900 seconds and idle_needed 5.`,
		Example: `  almanac whatif power --input docs/examples/whatif/power.json -f json
  almanac whatif power --input question.json -f value -c Off`,
	}, powerColumns, func(question io.Reader) (whatif.PowerAnswer, bool, error) {
		answer, err := whatif.Power(question)
		return answer, true, err
	})
}
