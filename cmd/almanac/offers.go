// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// quantities is a flag for a quantity or a range of them, such as 2-8.
type quantities v1.QuantityRange

func (q *quantities) Set(text string) (err error) {
	least, most := ends(text)
	if q.Min, err = strconv.Atoi(least); err == nil {
		q.Max, err = strconv.Atoi(most)
	}
	if err != nil {
		return fmt.Errorf("%q is no quantity; write a number, or two such as 2-8", text)
	}
	return nil
}

func (q *quantities) String() string {
	if q.Min == q.Max {
		return strconv.Itoa(q.Min)
	}
	return fmt.Sprintf("%d-%d", q.Min, q.Max)
}

func (q *quantities) Type() string { return "range" }

// durations is a flag for a duration or a range of them, such as 2h-8h.
type durations v1.DurationRange

func (d *durations) Set(text string) (err error) {
	least, most := ends(text)
	if _, seconds := strconv.ParseInt(least, 10, 64); seconds == nil && strings.ContainsAny(most, "smhdw") {
		return fmt.Errorf("%q has no unit at its first number; write both, such as 2h-8h", text)
	}
	if d.Min, err = v1.ParseDuration(least); err == nil {
		d.Max, err = v1.ParseDuration(most)
	}
	return err
}

func (d *durations) String() string {
	switch {
	case d.Max == 0:
		return ""
	case d.Min == d.Max:
		return d.Min.String()
	}
	return d.Min.String() + "-" + d.Max.String()
}

func (d *durations) Type() string { return "range" }

// ends returns the texts of both ends of a range, which are equal without a "-".
func ends(text string) (least, most string) {
	least, most, two := strings.Cut(text, "-")
	if !two {
		return text, text
	}
	return least, most
}

// numbered is an offer with its place in the list.
type numbered struct {
	number int
	v1.RankedOffer
}

func rankedFields(o numbered) []field {
	return []field{
		{"Offer", o.number, inLists}, {"Start", o.Start, inLists}, {"End", o.End, inLists}, {"Quantity", o.Quantity, inLists},
		{"Alternative", o.Alternative + 1, inLists}, {"Less Than Asked", o.GivesUp.Text, inLists}, {"Kind", o.Kind, inLongLists},
		{"Hosts", o.Hosts, inLongLists}, {"Matched", o.Matched, inLongLists},
	}
}

// wished has the flags of "offers".
type wished struct {
	request     v1.OffersRequest // fields that flags set directly
	quantity    quantities
	duration    durations
	start, end  moment
	properties  []string
	alternative v1.OfferAlternative
	resources   v1.Resources
	together    togetherFlags
}

func (p *process) offersCommand() *cobra.Command {
	w := &wished{quantity: quantities{Min: 1, Max: 1}}
	c := &cobra.Command{
		Use:   "offers",
		Short: "Show the best offers for ranges of quantities and durations",
		Long: `Show the best offers for ranges of quantities and durations, and what each has less
than all that was asked for. An offer holds nothing: book one with 'almanac reservation
create', its start, end and quantity, the --properties of its alternative and --together
as here, or hold it with --hold until 'almanac reservation confirm'. -f api prints the
request of each.

Each --properties is an alternative, the preferred one first; an empty one is any host.
Without --end, offers may start at any time that the limits allow.`,
		Example: `  almanac offers --quantity 2-8 --duration 2h-12h
  almanac offers --quantity 4 --duration 1d --end +2w --properties '["=", "$gpu", "a100"]' --properties '["=", "$gpu", "v100"]'
  almanac offers --quantity 4-16 --duration 12h --together rack
  almanac offers --kind instance --quantity 10-40 --vcpus 4 --duration 1d-1w -f api`,
	}
	listCommand(p, c, rankedFields, func(ctx context.Context, almanac *client.Client) (offers []numbered, answer v1.Offers, err error) {
		req, err := w.body(p, c)
		if err != nil {
			return nil, answer, err
		}
		for i := range req.Alternatives {
			if req.Alternatives[i].Together, err = identified(ctx, almanac, req.Alternatives[i].Together); err != nil {
				return nil, answer, err
			}
		}
		if answer, err = almanac.Offers(ctx, req); err != nil {
			return nil, answer, err
		}
		p.warnUnknown(answer.UnknownProperties)
		if !answer.Complete {
			p.inform("the search ended before it had tried everything: better offers may exist; ask for narrower ranges")
		}
		for i, o := range answer.Offers {
			offers = append(offers, numbered{i + 1, o})
		}
		return offers, answer, nil
	})
	w.flags(c.Flags())
	completeFlag(c, "together-rule", oneOf(reservation.TogetherRules))
	_ = c.MarkFlagRequired("duration") // fails only for a flag that does not exist
	completeFlag(c, "kind", oneOf(reservation.HostKinds))
	completeFlag(c, "affinity", oneOf([]calendar.Affinity{calendar.AffinityNone, calendar.AffinitySame, calendar.AffinityDifferent}))
	return c
}

func (w *wished) flags(flags *pflag.FlagSet) {
	flags.Var(&w.quantity, "quantity", "how many hosts or instances: a number, or a range such as 2-8")
	flags.Var(&w.duration, "duration", "how long: a duration, or a range such as 2h-12h")
	flags.Var(&w.start, "start", "the earliest start (default now)")
	flags.Var(&w.end, "end", "the latest end (default as late as the limits allow)")
	flags.StringArrayVar(&w.properties, "properties", nil, "filter that hosts must pass: JSON, or @FILE that contains it (repeatable: an alternative each)")
	flags.StringVar(&w.request.Name, "name", "", "name of the reservation in the requests that -f api prints (default offer)")
	flags.StringVar(&w.alternative.Kind, "kind", "", "what to reserve: host or instance (default host)")
	flags.Int64Var(&w.resources.VCPUs, "vcpus", 0, "VCPUs of one instance")
	flags.Int64Var(&w.resources.MemoryMB, "memory-mb", 0, "memory of one instance in MB")
	flags.Int64Var(&w.resources.DiskGB, "disk-gb", 0, "disk of one instance in GB")
	flags.StringVar(&w.alternative.Affinity, "affinity", "", "placement of the instances on hosts: none, same or different (default none)")
	w.together.add(flags)
}

// body returns the request of the flags.
func (w *wished) body(p *process, c *cobra.Command) (v1.OffersRequest, error) {
	req, one := w.request, w.alternative
	req.Quantity, req.Duration = (*v1.QuantityRange)(&w.quantity), (*v1.DurationRange)(&w.duration)
	if window := (v1.OfferWindow{Start: w.start.ahead(), End: given(c, "end", &w.end.at)}); window != (v1.OfferWindow{}) {
		req.Windows = []v1.OfferWindow{window}
	}
	if w.resources.VCPUs != 0 || w.resources.MemoryMB != 0 || w.resources.DiskGB != 0 {
		one.Resources = &w.resources
	}
	one.Together = w.together.asked(c.Flags())
	filters := w.properties
	if len(filters) == 0 {
		filters = []string{""}
	}
	for _, text := range filters {
		filter, err := p.filter(text)
		if err != nil {
			return req, err
		}
		one.HostProperties = filter
		req.Alternatives = append(req.Alternatives, one)
	}
	return req, nil
}
