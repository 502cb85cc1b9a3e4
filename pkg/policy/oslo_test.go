// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/policy"
)

// question is a question to both implementations.
type question struct {
	Rule   string            `json:"rule"`
	Target map[string]string `json:"target"`
	Creds  map[string]any    `json:"creds"`
}

// debianPython is the interpreter that python3-oslo.policy is installed for.
const debianPython = "/usr/bin/python3"

// oslo returns the answers of the real oslo.policy.
func oslo(t *testing.T, rules map[string]string, questions []question) []bool {
	t.Helper()
	if testing.Short() {
		t.Skip("make check leaves out what needs Debian's packages")
	}
	if err := exec.Command(debianPython, "-c", "import oslo_policy").Run(); err != nil {
		t.Fatal("python3-oslo.policy is missing, which comes with Keystone: run `make test`, or `make lab` once")
	}
	input, err := json.Marshal(map[string]any{"rules": rules, "questions": questions})
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), debianPython, "testdata/oslo.py")
	command.Stdin = bytes.NewReader(input)
	var complaint strings.Builder
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		t.Fatalf("oslo.policy: %v\n%s", err, complaint.String())
	}
	var answers []bool
	if err := json.Unmarshal(output, &answers); err != nil || len(answers) != len(questions) {
		t.Fatalf("oslo.policy answered %d of %d questions: %v", len(answers), len(questions), err)
	}
	return answers
}

// checkString draws a check string of oslo.policy; depth bounds its nesting.
func checkString(depth int) *rapid.Generator[string] {
	single := rapid.SampledFrom([]string{
		"@", "!", "role:admin", "role:Member", "role:reader", "role:compute:admin", "user_id:u1", "project_id:%(project_id)s",
		"project_id:p2", "is_admin_project:True", "system_scope:all", "'p1':%(project_id)s", "domain_id:%(project_id)s",
		"rule:reservations:create", "rule:service_api", "True:%(project_id)s",
	})
	if depth == 0 {
		return single
	}
	return rapid.OneOf(single, rapid.Custom(func(t *rapid.T) string {
		inner := checkString(depth - 1)
		a, b := inner.Draw(t, "left"), inner.Draw(t, "right")
		and := rapid.SampledFrom([]string{"and", "AND", "or", "Or"}).Draw(t, "joint")
		return rapid.SampledFrom([]string{
			fmt.Sprintf("(%s) %s (%s)", a, and, b), fmt.Sprintf("not (%s)", a), fmt.Sprintf("( %s\n %s\t(not (%s)))", a, and, b),
		}).Draw(t, "shape")
	}))
}

// flat draws checks that are joined without parentheses, where precedence decides.
var flat = rapid.Custom(func(t *rapid.T) string {
	words := []string{checkString(0).Draw(t, "first")}
	for range rapid.IntRange(0, 4).Draw(t, "joints") {
		words = append(words, rapid.SampledFrom([]string{"and", "or"}).Draw(t, "joint"), checkString(0).Draw(t, "next"))
	}
	return strings.Join(words, " ")
})

func TestDecisionsAreThoseOfOsloPolicy(t *testing.T) {
	const many = 400
	rules := map[string]string{"reservations:create": "role:member", "service_api": "role:service"}
	var names []string
	var questions []question
	var callers []policy.Credentials
	for i := range many {
		name := fmt.Sprintf("drawn%d", i)
		names = append(names, name)
		rules[name] = rapid.OneOf(checkString(2), flat).Example(i)
		by, creds := drawnCaller(i)
		callers = append(callers, by)
		questions = append(questions, question{Rule: name, Target: map[string]string{"project_id": fmt.Sprint("p", i%3)}, Creds: creds})
	}
	// An operator's own rule has an effect only if a rule of Almanac refers to it.
	file := maps.Clone(rules)
	file["feed:get"] = "rule:" + strings.Join(names, " or rule:")
	e := loaded(t, file)
	allowed := 0
	for i, want := range oslo(t, rules, questions) {
		got := e.Check(names[i], callers[i], questions[i].Target) == nil
		if got != want {
			t.Errorf("%q for %+v, target %v: got %v, oslo.policy answers %v", rules[names[i]], callers[i], questions[i].Target, got, want)
		}
		if want {
			allowed++
		}
	}
	if allowed < many/10 || allowed > many*9/10 {
		t.Errorf("%d of %d questions are answered yes; the draw shows little", allowed, many)
	}
}

// drawnCaller returns the same caller in both forms. Its roles include the implied ones:
// oslo.policy leaves implication to Keystone.
func drawnCaller(i int) (policy.Credentials, map[string]any) {
	roles := [][]string{{"ADMIN", "member", "reader"}, {"member", "reader"}, {"reader"}, {"service"}, {"compute:admin"}, nil}[i%6]
	by := policy.Credentials{UserID: fmt.Sprint("u", i%2), Roles: slices.Clone(roles), IsAdminProject: i%5 != 0}
	creds := map[string]any{"user_id": by.UserID, "roles": append([]string{}, roles...), "is_admin_project": by.IsAdminProject}
	switch i % 4 {
	case 0:
		by.System, creds["system_scope"] = true, "all"
	case 1:
		by.DomainID, creds["domain_id"] = "p1", "p1"
	default:
		by.ProjectID = fmt.Sprint("p", i%3)
		creds["project_id"] = by.ProjectID
	}
	return by, creds
}
