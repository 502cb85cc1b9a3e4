// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/client"
)

// findTagged is find with the tag, which lists do not have.
func (k catalog[T]) findTagged(ctx context.Context, almanac *client.Client, what string) (found T, tag string, err error) {
	tagging := almanac.Tagging(&tag)
	if found, err = k.find(ctx, tagging, what); err == nil && k.id(found) != what && k.name(found) == what {
		found, err = k.get(ctx, tagging, k.id(found))
	}
	return found, tag, err
}

// expected is the flag --if-match of the commands that change a kind of thing.
type expected struct{ kind, tag string }

// tagged matches the tag of a thing, with the quotes or without, and what a proxy has made of it. That of a
// group has three numbers.
var tagged = regexp.MustCompile(`^(W/)?"?[0-9]+(\.[0-9]+)*-[0-9a-f]{16}[!#-~]*"?$`)

// Set refuses what is no tag: an empty text comes from a command that failed, and would expect nothing.
func (e *expected) Set(text string) error {
	if text != "*" && !tagged.MatchString(text) {
		return fmt.Errorf("%q is no ETag of a %s; 'almanac %s show' prints it", text, e.kind, e.kind)
	}
	e.tag = text
	return nil
}

func (e *expected) String() string { return e.tag }

func (e *expected) Type() string { return "etag" }

func (e *expected) add(c *cobra.Command, kind string) {
	e.kind = kind
	c.Flags().Var(e, "if-match", "only if the "+kind+" still has this ETag, which '"+kind+" show' prints")
}

// of returns the client whose changes expect the tag. Quotes may be left out, since shells take them away.
func (e *expected) of(almanac *client.Client) *client.Client {
	if e.tag == "" || e.tag == "*" || strings.HasSuffix(e.tag, `"`) {
		return almanac.Expecting(e.tag)
	}
	return almanac.Expecting(`"` + e.tag + `"`)
}
