// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// Exit codes.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitNotFound = 3
	exitDenied   = 4
	exitNoRoom   = 5 // or a conflict, or what has changed since it was read
	exitTimedOut = 6
)

// outcome is an error with an exit code. Its text is empty if the error was printed already.
type outcome struct {
	code int
	text string
}

func (o *outcome) Error() string { return o.text }

// codeOf returns the exit code of an error.
func codeOf(err error) int {
	if o, ok := errors.AsType[*outcome](err); ok {
		return o.code
	}
	if e, ok := errors.AsType[*client.Error](err); ok {
		if e.Timeout() {
			return exitTimedOut
		}
		return codeOfKind(e.Kind)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return exitTimedOut
	}
	return codeOfKind(fault.Of(err).Kind)
}

func codeOfKind(kind fault.Kind) int {
	switch kind {
	case fault.Invalid, fault.TooLarge, fault.Unprocessable:
		return exitUsage
	case fault.NotFound:
		return exitNotFound
	case fault.Unauthorized, fault.Denied:
		return exitDenied
	case fault.Conflict, fault.Refused, fault.Precondition:
		return exitNoRoom
	default:
		return exitFailed
	}
}

// report prints the error of a command for its user.
func (p *process) report(command *cobra.Command, err error) {
	if errors.Is(err, context.Canceled) {
		p.inform("almanac: interrupted")
		return
	}
	failed, ok := errors.AsType[*client.Error](err)
	if !ok {
		if text := err.Error(); text != "" {
			p.inform("almanac: %s", text)
		}
		return
	}
	if failed.Refusal != nil && (p.format == "json" || p.format == "api") {
		p.reportJSON(failed)
		return
	}
	p.inform("almanac: %s", inFlags(command, failed, err))
	switch {
	case failed.Refusal != nil:
		p.explain(command, failed.Refusal)
	case failed.Timeout():
		p.inform("  hint: --timeout allows more time")
	case failed.Status == http.StatusUnauthorized:
		p.inform("  hint: set your credentials with --os-cloud, OS_CLOUD or the OS_* variables")
	case failed.Status == 0:
		p.inform("  hint: set the address of Almanac with --url or ALMANAC_URL")
	}
}

// reportJSON prints a refusal as in the answer of the API.
func (p *process) reportJSON(failed *client.Error) {
	text, err := indent(v1.ErrorAnswer{
		Error: v1.Error{
			Kind: string(failed.Kind), Field: failed.Field, Message: failed.Message, RequestID: failed.RequestID,
		},
		Refusal: failed.Refusal,
	})
	if err != nil {
		p.inform("almanac: %v", err)
		return
	}
	p.inform("%s", text)
}

// inFlags formats an error with the flag of the command that sets the wrong field, if there is
// one.
func inFlags(command *cobra.Command, failed *client.Error, err error) string {
	name := strings.NewReplacer("_time", "", "local_", "", "host_properties", "properties", "_", "-").Replace(failed.Field)
	if failed.Field == "start_time" && command.Flags().Lookup("time-of-day") != nil {
		name = "time-of-day"
	}
	if failed.Field == "" || command.Flags().Lookup(name) == nil {
		return err.Error()
	}
	return fmt.Sprintf("--%s: %s", name, failed.Message)
}

// indent formats JSON for people.
func indent(value any) ([]byte, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// blocksShown is the maximum number of blocking claims to print.
const blocksShown = 5

// explain prints why there is no capacity, and what would fit.
func (p *process) explain(command *cobra.Command, r *v1.Refusal) {
	if len(r.Occurrences) > 0 {
		p.explainOccurrences(command, r)
		return
	}
	p.inform("  constraint:       %s", r.Constraint)
	p.inform("  matched:          %d", r.Matched)
	p.inform("  free:             %d", r.Free)
	for i, b := range r.BlockedBy {
		if i == blocksShown {
			p.inform("                    and %d more", len(r.BlockedBy)-i)
			break
		}
		label := ""
		if i == 0 {
			label = "blocked by:"
		}
		p.inform("  %-16s  %s from %s to %s%s", label, b.Host, stamp(b.Start), stamp(b.End), blockers(b))
	}
	earliest := "none"
	if r.EarliestStart != nil {
		earliest = stamp(*r.EarliestStart)
	}
	p.inform("  earliest start:   %s", earliest)
	p.inform("  largest quantity: %d", r.LargestQuantity)
	if r.LatestEnd != nil {
		p.inform("  latest end:       %s", stamp(*r.LatestEnd))
	}
	if advice := p.advise(command, r); advice != "" {
		p.inform("  hint: try %s", advice)
	}
}

// blockers returns a list of the reservations of a block, for the end of a line; "" if it names none.
func blockers(b v1.Block) string {
	if len(b.Reservations) == 0 {
		return ""
	}
	return ": " + strings.Join(each(b.Reservations, func(r v1.Blocker) string {
		return fmt.Sprintf("%s (%s) of project %s", r.Name, r.ID, r.ProjectID)
	}), ", ")
}

// advise returns flags of the command that would make the request fit.
func (p *process) advise(command *cobra.Command, r *v1.Refusal) string {
	has := func(flag string) bool { return command.Flags().Lookup(flag) != nil }
	var ways []string
	if r.EarliestStart != nil && has("start") {
		way := "--start " + stamp(*r.EarliestStart)
		switch {
		case p.length > 0:
			way += " --end " + stamp(r.EarliestStart.Add(p.length))
		case command.Flags().Changed("end"):
			way += " with a later --end"
		}
		ways = append(ways, way)
	}
	if r.LargestQuantity > 0 && has("quantity") {
		ways = append(ways, "--quantity "+strconv.Itoa(r.LargestQuantity))
	}
	for _, flag := range []string{"until", "end"} {
		if r.LatestEnd != nil && has(flag) {
			ways = append(ways, "--"+flag+" "+stamp(*r.LatestEnd))
			break
		}
	}
	if r.EarliestStart != nil && !has("start") && p.length > 0 {
		ways = append(ways, fmt.Sprintf("'almanac reservation change --start %s --end %s'", stamp(*r.EarliestStart), stamp(r.EarliestStart.Add(p.length))))
	}
	switch reservation.Constraint(r.Constraint) {
	case reservation.HostsMatching:
		if has("properties") {
			ways = append(ways, "other --properties ('almanac properties' lists the properties that exist)")
		}
	case reservation.MaxDuration:
		if has("duration") {
			ways = append(ways, "a shorter --duration")
		}
	case reservation.MaxStartAhead:
		if has("start") {
			ways = append(ways, "an earlier --start")
		}
	}
	return strings.Join(ways, ", or ")
}

// stamp formats a time as all commands print it: RFC 3339 in UTC.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
