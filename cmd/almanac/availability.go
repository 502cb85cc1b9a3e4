package main

import (
	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

var windowColumns = []column[v1.Window]{
	{"Start", func(w v1.Window) any { return w.Start }, inLists},
	{"Latest Start", func(w v1.Window) any { return w.LatestStart }, inLists},
	{"End", func(w v1.Window) any { return w.End }, inLists},
	{"Free", func(w v1.Window) any { return w.Free }, inLists},
}

func (p *process) availabilityCommand() *cobra.Command {
	var quantity int
	var duration period
	var properties string
	start, end := moment{clock: p.now}, moment{clock: p.now}
	c := &cobra.Command{
		Use:   "availability",
		Short: "Show when hosts are free for long enough",
		Long: `Show when hosts are free for long enough: a reservation may start at any time from
Start to Latest Start. Free counts the hosts that are free at Start.`,
		Example: `  almanac availability --quantity 2 --duration 2h
  almanac availability --quantity 4 --duration 1d --start +1d --end +2w --properties '[">=", "$memory_mb", 262144]'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, err := newPrinter(p, windowColumns, inLists)
			if err != nil {
				return err
			}
			filter, err := p.filter(properties)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			question := client.AvailabilityQuery{
				Quantity: quantity, Duration: v1.Duration(duration), End: end.at, HostProperties: string(filter),
			}
			if at := start.ahead(); at != nil {
				question.Start = *at
			}
			answer, err := almanac.Availability(c.Context(), question)
			if err != nil {
				return err
			}
			p.warnUnknown(answer.UnknownProperties)
			p.inform("matching hosts: %d", answer.Matched)
			return out.list(answer.Windows, answer)
		},
	}
	flags := c.Flags()
	flags.IntVar(&quantity, "quantity", 1, "how many hosts")
	flags.Var(&duration, "duration", "how long")
	flags.Var(&start, "start", "look from here on (default now)")
	flags.Var(&end, "end", "look up to here (default 7 days on)")
	flags.StringVar(&properties, "properties", "", "which hosts will do: a filter in JSON, or @FILE with one")
	return c
}
