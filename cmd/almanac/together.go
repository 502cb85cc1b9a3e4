// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/reservation"
)

// togetherFlags has the flags about how hosts lie to each other.
type togetherFlags struct {
	wish      v1.TogetherWish
	preferred bool
}

// required adds the flags of a rule that is required.
func (t *togetherFlags) required(flags *pflag.FlagSet) {
	flags.StringVar(&t.wish.By, "together", "", "property whose values decide how the hosts lie to each other, such as zone")
	flags.StringVar(&t.wish.Rule, "together-rule", string(reservation.TogetherSame), "how: same, spread or fewest values of the property")
	flags.IntVar(&t.wish.Values, "together-values", 0, "over how many values at least, with the rule spread")
	flags.StringSliceVar(&t.wish.ApartFrom, "apart-from", nil, "other reservations, ID or NAME, whose values of --together no host may have")
}

// add adds all flags.
func (t *togetherFlags) add(flags *pflag.FlagSet) {
	t.required(flags)
	flags.BoolVar(&t.preferred, "together-preferred", false, "take other hosts at the same start rather than none")
}

// asked returns the wish of the flags; nil if there are none.
func (t *togetherFlags) asked(flags *pflag.FlagSet) *v1.TogetherWish {
	if !slices.ContainsFunc([]string{"together", "together-rule", "together-values", "apart-from"}, flags.Changed) && !t.preferred {
		return nil
	}
	w := t.wish
	if flags.Changed("apart-from") && len(w.ApartFrom) == 0 {
		w.ApartFrom = []string{""} // which names none: an empty variable must not lose the wish
	}
	if len(w.ApartFrom) > 0 && !flags.Changed("together-rule") {
		w.Rule = ""
	}
	if t.preferred {
		w.Required = new(false)
	}
	return &w
}

// identified returns the wish with the ids of the reservations that it names.
func identified(ctx context.Context, almanac *client.Client, wish *v1.TogetherWish) (*v1.TogetherWish, error) {
	if wish == nil {
		return nil, nil
	}
	together := *wish
	together.ApartFrom = slices.Clone(together.ApartFrom)
	for i, what := range together.ApartFrom {
		found, err := reservations.find(ctx, almanac, what)
		if err != nil {
			return nil, fmt.Errorf("--apart-from: %w", err)
		}
		together.ApartFrom[i] = found.ID
	}
	return &together, nil
}
