// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/reservation/notice"
)

func (p *process) webhookCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "webhook",
		Short: "Let a program be told when reservations change",
		Long: `Let a program be told when reservations change.

Almanac sends each change of your project's reservations to the URL of a webhook, as a
CloudEvent in the body of a POST, signed as Standard Webhooks describe it. A change is
sent until the program answers with a 2xx status, for a day unless the operator has
chosen otherwise, and at least once: the id of the event is the same each time. The
next change waits until then, so that changes arrive in their order.

The operator decides which addresses are allowed. A command accepts the id of a
webhook, or its name if no other webhook has the same name.`,
		Example: `  almanac webhook create chat --url https://hooks.example.org/almanac
  almanac webhook show chat
  almanac webhook delete chat`,
	}
	c.AddCommand(p.webhookCreateCommand(), p.webhookListCommand(), p.webhookShowCommand(), p.webhookDeleteCommand())
	return c
}

func webhookFields(w v1.Webhook) []field {
	return []field{
		{"ID", w.ID, inLists}, {"Name", w.Name, inLists}, {"URL", w.URL, inLists}, {"Waiting", w.Waiting, inLists},
		{"Last Success", w.LastSuccess, inLists}, {"Last Error", w.LastError, inLists}, {"Next Try", w.NextTry, inLongLists},
		{"Disabled", w.Disabled, inLongLists}, {"Event Types", eventTypesOf(w), inLongLists}, {"All Projects", w.AllProjects, inLongLists},
		{"Project", w.ProjectID, inLongLists}, {"User", w.UserID, inLongLists}, {"Created", w.CreatedAt, inLongLists},
		{"Failures", w.Failures, inShows}, {"Last Failure", w.LastFailure, inShows}, {"Dropped", w.Dropped, inShows},
	}
}

func eventTypesOf(w v1.Webhook) string {
	if len(w.EventTypes) == 0 {
		return "all"
	}
	return strings.Join(w.EventTypes, ", ")
}

func newWebhookFields(w v1.Webhook) []field {
	return append(webhookFields(w), field{"Secret", w.Secret, inShows})
}

var webhooks = catalog[v1.Webhook]{
	kind: "webhook", command: "almanac webhook list",
	id:   func(w v1.Webhook) string { return w.ID },
	name: func(w v1.Webhook) string { return w.Name },
	live: func(w v1.Webhook) bool { return w.Disabled == "" },
	get: func(ctx context.Context, almanac *client.Client, id string) (v1.Webhook, error) {
		return almanac.GetWebhook(ctx, id)
	},
	list: func(ctx context.Context, almanac *client.Client, _ string) iter.Seq2[v1.Webhook, error] {
		return almanac.ListWebhooks(ctx, client.WebhookFilter{PageSize: largestPage})
	},
}

func (p *process) webhookCreateCommand() *cobra.Command {
	var req v1.WebhookRequest
	var secret string
	c := &cobra.Command{
		Use:        "create NAME",
		SuggestFor: []string{"add", "new", "register"},
		Short:      "Let a URL be told of changes",
		Long: `Let a URL be told of changes. The answer shows the secret, which no other command does:
keep it where the program reads it. With --secret-file it is a secret of your own, such
as that of the webhook which this one replaces.`,
		Example: `  almanac webhook create chat --url https://hooks.example.org/almanac
  almanac webhook create ends --url https://hooks.example.org/ends --type reservation.before_end --type reservation.end
  almanac webhook create chat --url https://hooks.example.org/almanac -f value -c Secret`,
		Args:              needsOne("NAME"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			req.Name = args[0]
			if secret != "" {
				text, err := p.read(secret)
				if err != nil {
					return err
				}
				req.Secret = strings.TrimSpace(string(text))
			}
			return show(p, c, newWebhookFields, func(ctx context.Context, almanac *client.Client) (v1.Webhook, error) {
				return almanac.CreateWebhook(ctx, req)
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&req.URL, "url", "", "where the changes are sent")
	flags.StringArrayVar(&req.EventTypes, "type", nil, "a type of event to be told of, such as reservation.end (repeatable; default all)")
	flags.StringVar(&secret, "secret-file", "", "file with the secret, whsec_ and base64; - is the standard input (default one that Almanac makes)")
	flags.BoolVar(&req.AllProjects, "all-projects", false, "tell of the reservations of all projects (admins only)")
	_ = c.MarkFlagRequired("url") // fails only for a flag that does not exist
	completeFlag(c, "type", oneOf(notice.Types()))
	return c
}

func (p *process) webhookListCommand() *cobra.Command {
	var filter client.WebhookFilter
	var most limit
	c := &cobra.Command{
		Use:   "list",
		Short: "List webhooks, and whether they are told",
		Example: `  almanac webhook list
  almanac webhook list --long`,
	}
	listCommand(p, c, webhookFields, func(ctx context.Context, almanac *client.Client) ([]v1.Webhook, v1.Webhooks, error) {
		filter.PageSize = most.page()
		found, err := collect(almanac.ListWebhooks(ctx, filter), most)
		return found, v1.Webhooks{Webhooks: found}, err
	})
	c.Flags().BoolVar(&filter.AllProjects, "all-projects", false, "webhooks of all projects (admins only)")
	most.add(c)
	return c
}

func (p *process) webhookShowCommand() *cobra.Command {
	return showCommand(p, &cobra.Command{
		Use:   "show ID|NAME",
		Short: "Show a webhook, and why it was not told",
		Example: `  almanac webhook show chat
  almanac webhook show chat -f value -c "Last Error"`,
		ValidArgsFunction: onlyOne(webhooks.complete(p)),
	}, webhookFields, webhooks.find)
}

func (p *process) webhookDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "delete ID|NAME",
		SuggestFor:        []string{"remove", "rm"},
		Short:             "Delete a webhook, and what waits for it",
		Example:           `  almanac webhook delete chat`,
		Args:              needsOne("ID or NAME"),
		ValidArgsFunction: onlyOne(webhooks.complete(p)),
		RunE: func(c *cobra.Command, args []string) error {
			return with(p, c, webhookFields, inShows, func(ctx context.Context, almanac *client.Client, _ printer[v1.Webhook]) error {
				w, err := webhooks.find(ctx, almanac, args[0])
				if err != nil {
					return err
				}
				if err := almanac.DeleteWebhook(ctx, w.ID); err != nil {
					return err
				}
				p.inform("webhook %s %s is deleted, and %s", w.ID, plain(w.Name), waitingText(w.Waiting))
				return nil
			})
		},
	}
}

func waitingText(n int) string {
	if n == 0 {
		return "nothing waited for it"
	}
	return fmt.Sprintf("%d that waited for it", n)
}
