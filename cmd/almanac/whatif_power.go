package main

import (
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/whatif"
)

func powerFields(a whatif.PowerAnswer) []field {
	reasons := each(slices.Sorted(maps.Keys(a.Reasons)), func(host string) string { return host + ": " + a.Reasons[host] })
	return []field{{"On", lines(a.On), inLists}, {"Off", lines(a.Off), inLists}, {"Reasons", lines(reasons), inLists}}
}

func (p *process) whatIfPowerCommand() *cobra.Command {
	return whatIf(p, &cobra.Command{
		Use:   "power",
		Short: "Plan which hosts to switch on and off (paper 004)",
		Long: `Plan which hosts to switch on and off, by the rules of the paper alone, without the
safety limits of a cloud.

The number of hosts that stay on is the forecast of the hosts in use, or the number of
reserved hosts if that is larger. reserved names the hosts with a reservation that runs
or starts within the horizon: the plan switches them on first, and never off. Then it
switches on the most efficient hosts while too few are on, or switches off the least
efficient hosts that have been idle for idle_needed measurements while too many are on.
A host that is on and has been idle for 0 measurements is busy. The default horizon is
900 seconds, the default idle_needed 5.`,
		Example: `  almanac whatif power --input docs/examples/whatif/power.json -f json
  almanac whatif power --input question.json -f value -c Off`,
	}, powerFields, func(question io.Reader) (whatif.PowerAnswer, bool, error) {
		answer, err := whatif.Power(question)
		return answer, true, err
	})
}
