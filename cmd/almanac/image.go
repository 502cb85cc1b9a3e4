package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

var imageColumns = []column[v1.Image]{
	{"Image", func(i v1.Image) any { return i.ID }, inLists},
	{"Name", func(i v1.Image) any { return i.Name }, inLists},
	{"Host", func(i v1.Image) any { return i.Host }, inLists},
	{"State", func(i v1.Image) any { return i.State }, inLists},
	{"Start", func(i v1.Image) any { return i.Start }, inLists},
	{"End", func(i v1.Image) any { return i.End }, inLists},
	{"Bytes", func(i v1.Image) any { return i.Bytes }, inLongLists},
	{"Kept Until", func(i v1.Image) any { return i.KeptUntil }, inLongLists},
	{"Reservations", func(i v1.Image) any { return i.Reservations }, inLongLists},
	{"Detail", func(i v1.Image) any { return prose(i.Detail) }, inLists},
}

func (p *process) imageCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "image",
		Short: "See which images are on which hosts, or on their way there",
		Example: `  almanac image list
  almanac image list --long -f json`,
	}
	c.AddCommand(p.imageListCommand())
	return c
}

func (p *process) imageListCommand() *cobra.Command {
	var long bool
	var filter client.ImageFilter
	c := &cobra.Command{
		Use:   "list",
		Short: "List images on hosts: those that are there, and the transfers due and under way",
		Long: `List images on hosts, as far as Almanac had them put there: those that are there, and
the transfers that are scheduled or under way for reservations. They are shown to
admins and readers of the system.`,
		Example: `  almanac image list
  almanac image list --image debian-12 --state failed,late
  almanac image list --long -f json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, err := newPrinter(p, imageColumns, listed(long))
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			found, err := almanac.Images(c.Context(), filter)
			if err != nil {
				return err
			}
			return out.list(found.Images, found)
		},
	}
	c.Flags().StringVar(&filter.Image, "image", "", "only that image, by its id or name")
	c.Flags().StringVar(&filter.Host, "host", "", "only those on this host")
	c.Flags().StringSliceVar(&filter.States, "state", nil, "only those in one of these states: "+
		"there, transferring, scheduled, late, waiting, failed")
	c.Flags().BoolVar(&long, "long", false, "print more columns")
	return c
}

// hostImage writes where the image of a reservation stands on a host.
func hostImage(h v1.HostImage) string {
	text := strings.TrimSpace(h.Host + " " + h.State)
	if h.Start != nil {
		text += " from " + stamp(*h.Start)
	}
	if h.End != nil {
		text += " to " + stamp(*h.End)
	}
	if h.Detail != "" {
		text = fmt.Sprintf("%s: %s", text, h.Detail)
	}
	return text
}
