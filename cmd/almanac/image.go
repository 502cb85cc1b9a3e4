// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

func imageFields(i v1.Image) []field {
	return []field{
		{"Image", i.ID, inLists}, {"Name", i.Name, inLists}, {"Host", i.Host, inLists}, {"State", i.State, inLists},
		{"Start", i.Start, inLists}, {"End", i.End, inLists}, {"Bytes", i.Bytes, inLongLists}, {"Kept Until", i.KeptUntil, inLongLists},
		{"Reservations", i.Reservations, inLongLists}, {"Detail", prose(i.Detail), inLists},
	}
}

func (p *process) imageCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "image",
		Short: "List images on hosts and their transfers",
		Example: `  almanac image list
  almanac image list --long -f json`,
	}
	c.AddCommand(p.imageListCommand())
	return c
}

func (p *process) imageListCommand() *cobra.Command {
	var filter client.ImageFilter
	c := &cobra.Command{
		Use:   "list",
		Short: "List images on hosts, and their transfers",
		Long: `List the images that Almanac has placed on hosts, and the scheduled and running
transfers for reservations. Only admins and system readers can see them.`,
		Example: `  almanac image list
  almanac image list --image debian-12 --state failed,late
  almanac image list --long -f json`,
	}
	listCommand(p, c, imageFields, func(ctx context.Context, almanac *client.Client) ([]v1.Image, v1.Images, error) {
		found, err := almanac.Images(ctx, filter)
		return found.Images, found, err
	})
	c.Flags().StringVar(&filter.Image, "image", "", "only this image: id or name")
	c.Flags().StringVar(&filter.Host, "host", "", "only images on this host")
	c.Flags().StringSliceVar(&filter.States, "state", nil, "only images in one of these states: "+
		"there, transferring, scheduled, late, waiting, failed")
	return c
}

// hostImage describes the state of a reservation's image on a host.
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
