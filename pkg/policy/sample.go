// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"io"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

const sampleHead = `# Policy of Almanac: who may do what.
#
# Every rule stands here with its default, as a comment. To change a rule, remove
# the "#" before it and write another check:
#
#   role:NAME                  the token has this role (admin implies member, member implies reader)
#   rule:NAME                  another rule; you may add rules of your own and refer to them
#   CREDENTIAL:VALUE           user_id, user_domain_id, project_id, project_domain_id, domain_id,
#                              system_scope (all) or is_admin_project (True) of the token
#   project_id:%(project_id)s  the token is for the project that the request is about
#   @  !                       always, never
#
# joined with and, or, not and parentheses. "almanacd policy check" tests a rule.
`

// Sample writes the commented policy.yaml with every default.
func Sample(w io.Writer) error {
	var out strings.Builder
	out.WriteString(sampleHead)
	for _, r := range Defaults() {
		fmt.Fprintf(&out, "\n# %s\n", r.Description)
		for _, o := range r.Operations {
			fmt.Fprintf(&out, "# %s %s\n", o.Method, o.Path)
		}
		if len(r.Scopes) > 0 {
			fmt.Fprintf(&out, "# Scopes: %s\n", strings.Join(fault.Texts(r.Scopes), ", "))
		}
		fmt.Fprintf(&out, "#%q: %q\n", r.Name, r.Check)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
