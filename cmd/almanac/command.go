// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// with runs work with a client and a printer. It returns the error for a wrong --column before it
// connects.
func with[T any](p *process, c *cobra.Command, all columns[T], in columnPlace, work func(context.Context, *client.Client, printer[T]) error) error {
	out, err := newPrinter(p, all, in)
	if err != nil {
		return err
	}
	almanac, err := p.connect(c.Context())
	if err != nil {
		return err
	}
	return work(c.Context(), almanac, out)
}

// show prints the resource that ask returns.
func show[T any](p *process, c *cobra.Command, all columns[T], ask func(context.Context, *client.Client) (T, error)) error {
	return with(p, c, all, inShows, func(ctx context.Context, almanac *client.Client, out printer[T]) error {
		found, err := ask(ctx, almanac)
		if err != nil {
			return err
		}
		return out.one(found, found)
	})
}

// list prints the resources that ask returns together with the answer of the API.
func list[T, A any](p *process, c *cobra.Command, all columns[T], in columnPlace, ask func(context.Context, *client.Client) ([]T, A, error)) error {
	return with(p, c, all, in, func(ctx context.Context, almanac *client.Client, out printer[T]) error {
		items, answer, err := ask(ctx, almanac)
		if err != nil {
			return err
		}
		return out.list(items, answer)
	})
}

// showCommand completes c: it shows the resource that its argument names.
func showCommand[T any](p *process, c *cobra.Command, all columns[T], find func(context.Context, *client.Client, string) (T, error)) *cobra.Command {
	c.Args = needsOne(strings.ReplaceAll(strings.TrimPrefix(c.Use, "show "), "|", " or "))
	c.RunE = func(c *cobra.Command, args []string) error {
		return show(p, c, all, func(ctx context.Context, almanac *client.Client) (T, error) { return find(ctx, almanac, args[0]) })
	}
	return c
}

// listCommand completes c: it lists resources, and has the flag --long.
func listCommand[T, A any](p *process, c *cobra.Command, all columns[T], ask func(context.Context, *client.Client) ([]T, A, error)) *cobra.Command {
	var long bool
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		in := inLists
		if long {
			in = inLongLists
		}
		return list(p, c, all, in, ask)
	}
	c.Flags().BoolVar(&long, "long", false, "print more columns")
	return c
}

// largestPage is the largest number of elements in one page of the API.
const largestPage = 1000

// limit is a flag for the maximum number of elements of a list; 0 means all.
type limit int

func (l *limit) add(c *cobra.Command) { c.Flags().Var(l, "limit", "maximum number; 0 is all") }

func (l *limit) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return errors.New("must be a whole number that is not negative; 0 is all")
	}
	*l = limit(n)
	return nil
}

func (l *limit) String() string { return strconv.Itoa(int(*l)) }

func (l *limit) Type() string { return "int" }

// page returns how many elements to request at once.
func (l limit) page() int {
	if l == 0 {
		return largestPage
	}
	return min(int(l), largestPage)
}

// collect returns the first elements of a list, at most limit.
func collect[T any](list iter.Seq2[T, error], most limit) ([]T, error) {
	elements := []T{}
	for element, err := range list {
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
		if len(elements) == int(most) {
			break
		}
	}
	return elements, nil
}

// catalog is a collection of resources that have an id and a name, which need not be unique.
type catalog[T any] struct {
	kind, command string // such as "reservation", and the command that lists them
	id, name      func(T) string
	live          func(T) bool // it is not over
	get           func(ctx context.Context, almanac *client.Client, id string) (T, error)
	// list returns at least the resources with a name; with an empty name, at least the live ones.
	list func(ctx context.Context, almanac *client.Client, name string) iter.Seq2[T, error]
}

// find returns the resource with an id or a name. If several have the name, it returns the one that
// is live, if there is only one.
func (k *catalog[T]) find(ctx context.Context, almanac *client.Client, what string) (T, error) {
	found, err := k.get(ctx, almanac, what)
	if failed, ok := errors.AsType[*client.Error](err); !ok || failed.Status != http.StatusNotFound {
		return found, err
	}
	if _, isID := uuid.Parse(what); isID == nil {
		return found, err
	}
	var named, live []T
	for r, err := range k.list(ctx, almanac, what) {
		if err != nil {
			return found, err
		}
		if k.name(r) != what {
			continue
		}
		named = append(named, r)
		if k.live(r) {
			live = append(live, r)
		}
	}
	if len(live) == 0 {
		live = named
	}
	switch len(live) {
	case 0:
		return found, fault.New(fault.NotFound, "no %s has the id or name %q; '%s' lists yours", k.kind, what, k.command)
	case 1:
		return live[0], nil
	}
	ids := strings.Join(each(live, k.id), ", ")
	return found, fault.New(fault.Invalid, "%s have the name %q; use the id of one: %s", fault.Counted(len(live), k.kind), what, ids)
}

// complete offers the ids and names of live resources.
func (k *catalog[T]) complete(p *process) cobra.CompletionFunc {
	return p.complete(func(ctx context.Context, almanac *client.Client, begun string) ([]cobra.Completion, error) {
		found, err := collect(k.list(ctx, almanac, ""), mostCompletions)
		var offers []cobra.Completion
		for _, r := range found {
			if !k.live(r) {
				continue
			}
			id, name := k.id(r), k.name(r)
			if strings.HasPrefix(id, begun) {
				offers = append(offers, cobra.CompletionWithDesc(id, plain(name)))
			}
			if name != "" && strings.HasPrefix(name, begun) && plain(name) == name {
				offers = append(offers, cobra.CompletionWithDesc(name, id))
			}
		}
		return offers, err
	})
}

// pollTime is the interval in which await looks again.
const pollTime = 2 * time.Second

// await calls again every pollTime, for the next state of r, until over returns true or an error.
// When the time most is over, it fails with the exit code for a timeout and the text of late.
func await[T any](
	ctx context.Context, p *process, r T, most period, over func(T) (bool, error), again func(context.Context, T) (T, error), late func(T) string,
) (T, error) {
	last := p.now().Add(most.time())
	for {
		if done, err := over(r); done || err != nil {
			return r, err
		}
		left := last.Sub(p.now())
		if left <= 0 {
			return r, &outcome{exitTimedOut, late(r)}
		}
		if err := p.pause(ctx, min(left, pollTime)); err != nil {
			return r, err
		}
		next, err := again(ctx, r)
		if err != nil {
			return r, err
		}
		r = next
	}
}
