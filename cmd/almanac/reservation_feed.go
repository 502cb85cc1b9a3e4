package main

import (
	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

var feedColumns = []column[v1.Feed]{
	{"URL", func(f v1.Feed) any { return f.URL }, inLists},
}

func (p *process) reservationFeedCommand() *cobra.Command {
	var urlOnly bool
	c := &cobra.Command{
		Use:   "feed",
		Short: "Show the link of your project's calendar feed",
		Long: `Show the link with which a calendar program reads your project's reservations. It
needs no token: whoever has the link can read them.`,
		Example: `  almanac reservation feed
  almanac reservation feed --url-only`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if urlOnly {
				p.format, p.columns = "value", nil
			}
			out, err := newPrinter(p, feedColumns, inShows)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			feed, err := almanac.Feed(c.Context())
			if err != nil {
				return err
			}
			return out.one(feed, feed)
		},
	}
	c.Flags().BoolVar(&urlOnly, "url-only", false, "print nothing but the link, as -f value does")
	return c
}
