// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/policy"
)

// newPolicyCommand returns `policy`. load returns the rules in effect, identify the
// credentials of a token.
func newPolicyCommand(
	load func() (*policy.Enforcer, error), identify func(ctx context.Context, token string) (policy.Credentials, error),
) *cobra.Command {
	group := &cobra.Command{Use: "policy", Short: "Show and check the access rules"}
	group.AddCommand(
		&cobra.Command{
			Use: "sample", Args: cobra.NoArgs,
			Short: "Print every rule with its default and the calls that it guards",
			RunE:  func(c *cobra.Command, _ []string) error { return policy.Sample(c.OutOrStdout()) },
		},
		newPolicyCheck(load, identify),
	)
	return group
}

// trial is the question of `policy check`.
type trial struct {
	rule, token string
	by          policy.Credentials
	target      map[string]string
}

func newPolicyCheck(
	load func() (*policy.Enforcer, error), identify func(ctx context.Context, token string) (policy.Credentials, error),
) *cobra.Command {
	var t trial
	check := &cobra.Command{
		Use: "check", Args: cobra.NoArgs,
		Short: "Check whether a rule allows a user an action, and why",
		Long: "Checks whether a rule allows a user an action, and shows every rule that it refers to. With one rule the\n" +
			"exit status is 0 if the action is allowed and 1 if it is denied; --rule all lists every rule.",
		Example: "  almanacd policy check --rule reservations:create --project-id demo --roles member\n" +
			"  almanacd policy check --rule all --token \"$(openstack token issue -f value -c id)\"",
		RunE: func(c *cobra.Command, _ []string) error {
			rules, err := load()
			if err != nil {
				return err
			}
			if t.token != "" {
				if t.by, err = identify(c.Context(), t.token); err != nil {
					return err
				}
			}
			return t.run(c.OutOrStdout(), rules)
		},
	}
	flags := check.Flags()
	flags.StringVar(&t.rule, "rule", "", "rule to check, or all")
	flags.StringVar(&t.token, "token", "", "token of the user")
	flags.StringVar(&t.by.UserID, "user-id", "", "id of the user, without a token")
	flags.StringVar(&t.by.ProjectID, "project-id", "", "project scope of the token")
	flags.StringSliceVar(&t.by.Roles, "roles", nil, "roles of the token")
	flags.BoolVar(&t.by.System, "system", false, "system scope of the token")
	flags.BoolVar(&t.by.IsAdminProject, "admin-project", true, "the project is the admin project, or the cloud has none")
	flags.StringToStringVar(&t.target, "target", nil, "target of the action, such as project_id=ID (default: the user's project)")
	_ = check.MarkFlagRequired("rule") // fails only for a flag that does not exist
	for _, name := range []string{"user-id", "project-id", "roles", "system", "admin-project"} {
		check.MarkFlagsMutuallyExclusive("token", name)
	}
	check.MarkFlagsOneRequired("token", "roles", "project-id", "user-id", "system")
	return check
}

// run checks the rules for the caller of `policy check`, and prints which of them allow.
func (t trial) run(w io.Writer, rules *policy.Enforcer) error {
	for name := range t.target {
		if name != policy.ProjectID {
			return fault.Field("--target", "%s", fault.Unknown("attribute", name, []string{policy.ProjectID}))
		}
	}
	if t.target == nil {
		t.target = map[string]string{policy.ProjectID: t.by.ProjectID}
	}
	if t.rule == "all" {
		for _, name := range rules.Rules() {
			fmt.Fprintf(w, "%-7s  %s\n", allowed(rules.Check(name, t.by, t.target) == nil), name)
		}
		return nil
	}
	if names := rules.Rules(); !slices.Contains(names, t.rule) {
		return fault.Field("--rule", "%s", fault.Unknown("rule", t.rule, names))
	}
	err := rules.Check(t.rule, t.by, t.target)
	fmt.Fprintf(w, "%s %s\n", t.rule, allowed(err == nil))
	for _, step := range rules.Explain(t.rule, t.by, t.target) {
		fmt.Fprintf(w, "  %-5t  %s: %q", step.Allowed, step.Rule, step.Check)
		if step.Source != "" {
			fmt.Fprintf(w, "  (%s)", step.Source)
		}
		fmt.Fprintln(w)
	}
	return err
}

func allowed(yes bool) string {
	if yes {
		return "allowed"
	}
	return "denied"
}
