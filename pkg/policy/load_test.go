// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/policy"
)

// written returns the path of a file with text.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func loaded(t *testing.T, rules map[string]string) *policy.Enforcer {
	t.Helper()
	text, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	e, err := policy.Load(policy.Options{File: written(t, "policy.yaml", string(text))})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestWhatIsWrongWithAPolicyIsSaidAsItIsLoaded(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a mistyped rule":             {`"reservation:create": "@"`, `there is no rule "reservation:create"; did you mean "reservations:create"?`},
		"a rule asked for is missing": {`"hosts:list": "rule:projekt_reader_api"`, `there is no rule "projekt_reader_api"; did you mean "project_reader_api"?`},
		"a circle":                    {"\"hosts:list\": \"rule:mine\"\n\"mine\": \"role:x or rule:hosts:list\"", "rule hosts:list: it refers to itself"},
		"a rule that asks for itself": {`"mine": "rule:mine"`, `there is no rule "mine"`},
		"a check over HTTP":           {`"hosts:list": "http://127.0.0.1/ask"`, "Almanac does not ask other servers"},
		"a mistyped credential":       {`"hosts:list": "projct_id:%(project_id)s"`, `there is no credential "projct_id"; did you mean "project_id"?`},
		"an unknown target":           {`"hosts:list": "user_id:%(user_id)s"`, `a target has no attribute "user_id"`},
		"a word that is no check":     {`"hosts:list": "member"`, `"member" is not a check`},
		"a half-open parenthesis":     {`"hosts:list": "(role:member or role:reader"`, "is not a check string"},
		"two checks without a joint":  {`"hosts:list": "role:member role:reader"`, "is not a check string"},
		"a variable in a word":        {`"hosts:list": "role:x%(project_id)s"`, "the right side must be one word"},
		"two constants":               {`"hosts:list": "'a':a"`, "compares two constants"},
		"a blank check":               {`"hosts:list": "  "`, `"  " is not a check string`},
		"no check":                    {`"hosts:list":`, `rule hosts:list: a check is a string in quotes`},
		"a list, as long ago":         {`"hosts:list": [["role:member"]]`, "rule hosts:list: a check is a string in quotes"},
		"no mapping":                  {`- role:member`, "must list rules"},
		"no YAML":                     {`"hosts:list": "@`, "must list rules"},
		"the same rule twice":         {"\"hosts:list\": \"@\"\n\"hosts:list\": \"!\"", "must list rules"},
	} {
		t.Run(name, func(t *testing.T) {
			path := written(t, "policy.yaml", c.text)
			_, err := policy.Load(policy.Options{File: path})
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v\nwant a fault that contains the file and: %s", err, c.want)
			}
		})
	}
}

func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	_, err := policy.Load(policy.Options{File: written(t, "policy.yaml", "\"hosts:lst\": \"@\"\n\"hosts:get\": \"http:x\"\n\"feed:get\": \"rule:nothing\"")})
	for _, want := range []string{"hosts:lst", "hosts:get", "feed:get"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in: %v", want, err)
		}
	}
}

func TestAFileOverridesADefaultAndAFolderOverridesTheFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"10.yaml": `"hosts:list": "role:first"`, "20.yaml": `"hosts:list": "role:second"`,
		"30.yaml.bak": `"hosts:list": "role:third"`, ".40.yaml": `"hosts:list": "role:fourth"`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := written(t, "policy.yaml", "\"hosts:list\": \"role:file\"\n\"hosts:get\": \"role:file\"")
	e, err := policy.Load(policy.Options{File: file, Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	for rule, want := range map[string]string{"hosts:list": "role:second", "hosts:get": "role:file", "hosts:update": "rule:context_is_admin"} {
		if got := e.Explain(rule, policy.Credentials{}, nil)[0].Check; got != want {
			t.Errorf("%s: got %q, want %q", rule, got, want)
		}
	}
}

func TestAFileMayAddRulesThatOthersAskFor(t *testing.T) {
	e := loaded(t, map[string]string{"hosts:update": "rule:site:operators", "site:operators": "role:operator"})
	if err := e.Check("hosts:update", policy.Credentials{ProjectID: "p", Roles: []string{"operator"}}, nil); err != nil {
		t.Error(err)
	}
}

func TestAMissingFileOrFolderIsAnError(t *testing.T) {
	for name, o := range map[string]policy.Options{
		"[oslo_policy] policy_file": {File: "no/such/policy.yaml"},
		"[oslo_policy] policy_dirs": {Dirs: []string{"no/such/policy.d"}},
	} {
		if _, err := policy.Load(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want an error that names %s", err, name)
		}
	}
}

func TestTheSampleChangesNothing(t *testing.T) {
	var sample strings.Builder
	if err := policy.Sample(&sample); err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Load(policy.Options{File: written(t, "policy.yaml", sample.String())}); err != nil {
		t.Errorf("the unchanged sample: %v", err)
	}
	active := strings.ReplaceAll(sample.String(), "\n#\"", "\n\"")
	e, err := policy.Load(policy.Options{File: written(t, "policy.yaml", active)})
	if err != nil {
		t.Fatalf("with every rule active: %v", err)
	}
	for _, r := range policy.Defaults() {
		step := e.Explain(r.Name, policy.Credentials{}, nil)[0]
		if step.Check != r.Check || step.Source == "" {
			t.Errorf("%s: the sample has %q, the default is %q", r.Name, step.Check, r.Check)
		}
	}
}

func TestTheShippedPolicyIsTheSample(t *testing.T) {
	var sample strings.Builder
	if err := policy.Sample(&sample); err != nil {
		t.Fatal(err)
	}
	shipped, err := os.ReadFile("../../etc/almanac/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if string(shipped) != sample.String() {
		t.Error("etc/almanac/policy.yaml is not what almanacd policy sample prints; renew it")
	}
}
