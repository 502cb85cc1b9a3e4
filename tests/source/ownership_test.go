// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/repository"
)

// compared names the comparisons with a project that are not about the owner of a reservation or a lease.
var compared = map[string]string{
	"reservation: r.ProjectID == project":                                  "it is BelongsTo",
	"reservation: l.ProjectID == project":                                  "it is BelongsTo",
	"reservation: s.ProjectID == project":                                  "it is BelongsTo",
	"reservation/webhook: w.ProjectID == project":                          "it is BelongsTo",
	"reservation/address: there[i].Project != h.Project":                   "a floating IP, below the package reservation",
	"reservation/address: f.Project == h.Project":                          "a floating IP, below the package reservation",
	"reservation/booking: project == c.Revisions[0].Reservation.ProjectID": "what a project holds: where it is charged",
	"reservation/booking: u.Project == project":                            "what a project holds: where it is charged",
	"reservation/booking: a.next.ProjectID != project":                     "what a project holds: where it is charged",
	"reservation/booking: g[0].next.ProjectID == a.next.ProjectID":         "what a project holds: where it is charged",
	"reservation/planning: project == p.view.Project":                      "what a project holds: where it is charged",
	"reservation/planning: x.of.ProjectID == project":                      "what a project holds: where it is charged",
	"filters: value == r.ProjectID":                                        "an aggregate is for the project",
	"filters: project == r.ProjectID":                                      "an aggregate is for the project",
	"pkg/api/instances: r.ProjectID == by.ProjectID":                       "a best-effort request, which nobody shares",
	"pkg/api/instances: i.ProjectID == project":                            "an instance",
	"pkg/api/instances: project == by.ProjectID":                           "a decision on an instance",
	"pkg/api/reservations: project != by.ProjectID":                        "the project that the caller asks about",
	"pkg/api/calendar: u.project != by.ProjectID":                          "the project that the caller asks about",
	"pkg/api/leases: q.ProjectID != by.ProjectID":                          "the project that the caller asks about",
	"reservation/besteffort/openstack: a.ProjectID == project":             "an application credential",
	"reservation/besteffort/requests: p.ProjectID != project":              "a server of a best-effort request",
}

// Who owns a reservation or a lease is decided by its BelongsTo alone.
func TestTheOwnerIsComparedInOnePlace(t *testing.T) {
	unused := map[string]bool{}
	for text := range compared {
		unused[text] = true
	}
	for _, p := range packages(t) {
		if strings.HasPrefix(p.name(), "tests/") {
			continue // an oracle does not call what it checks
		}
		set, files := parsed(t, p)
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				e, is := n.(*ast.BinaryExpr)
				if !is || e.Op != token.EQL && e.Op != token.NEQ || !isOwner(e.X) && !isOwner(e.Y) || isLiteral(e.X) || isLiteral(e.Y) {
					return true
				}
				text := p.name() + ": " + types.ExprString(e)
				if _, known := compared[text]; !known {
					t.Errorf("%s: %s; if it is about the owner of a reservation or a lease, call its BelongsTo, else name it in compared", set.Position(n.Pos()), types.ExprString(e))
				}
				delete(unused, text)
				return true
			})
		}
	}
	for text := range unused {
		t.Errorf("compared names %q, which is nowhere", text)
	}
}

// keyed names the maps by the project of something, and what they hold: a key is a comparison too.
var keyed = map[string]string{
	"reservation/webhook: inProgress[d.ProjectID]":                    "the requests of the webhooks of a project",
	"pkg/sim/cloud: known[s.ProjectID]":                               "a project's servers",
	"pkg/sim/cloud: found[s.ProjectID]":                               "a project's servers",
	"pkg/store: f.owners[f.asked.Project]":                            "the projects whose counts are read",
	"reservation/besteffort/controller: projects[r.ProjectID]":        "a project's servers",
	"reservation/besteffort/openstack: found[s.ProjectID]":            "a project's servers",
	"reservation/booking: l.of[r.ProjectID]":                          "the turns of the projects in the line",
	"reservation/planning: s.freed.Projects[r.ProjectID]":             "whose limits have changed: where it is charged",
	"reservation/planning: s.held[r.ProjectID]":                       "what a project holds: where it is charged",
	"reservation/booking: w.projects[a.next.ProjectID]":               "the version of what a project holds: where it is charged",
	"reservation/booking: f.projects[p.Project]":                      "the version of what a project holds: where it is charged",
	"reservation/booking: byProject[r.ProjectID]":                     "what a project holds: where it is charged",
	"reservation/booking: m.held[e.r.ProjectID]":                      "what a project holds: where it is charged",
	"reservation/booking: m.held[r.ProjectID]":                        "what a project holds: where it is charged",
	"reservation/booking: m.held[a.next.ProjectID]":                   "what a project holds: where it is charged",
	"reservation/booking: w.held[a.next.ProjectID]":                   "what a project holds: where it is charged",
	"reservation/booking: t.Usage[r.ProjectID]":                       "what a project holds: where it is charged",
	"reservation/booking/memory: m.usage[u.Project]":                  "what a project holds: where it is charged",
	"reservation/booking: w.projects[u.Project]":                      "the version of what a project holds: where it is charged",
	"reservation/booking/memory: raised[r.ProjectID]":                 "as ownedByAny of pkg/store",
	"reservation/booking/memory: asked[m.reservations[id].ProjectID]": "the projects whose counts are read",
	"reservation/upkeep: j.gone[r.ProjectID]":                         "whether Keystone knows the project of the request",
	"reservation/upkeep: f.gone[r.ProjectID]":                         "whether Keystone knows the project of the request",
}

func TestAMapByProjectIsNotAboutTheOwner(t *testing.T) {
	unused := maps.Clone(keyed)
	for _, p := range packages(t) {
		if strings.HasPrefix(p.name(), "tests/") {
			continue // an oracle does not call what it checks
		}
		set, files := parsed(t, p)
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				e, is := n.(*ast.IndexExpr)
				if !is || !isOwner(e.Index) {
					return true
				}
				text := p.name() + ": " + types.ExprString(e)
				if keyed[text] == "" {
					t.Errorf("%s: %s; if it is about the owner of a reservation or a lease, call its BelongsTo, else state in keyed what the map holds", set.Position(n.Pos()), types.ExprString(e))
				}
				delete(unused, text)
				return true
			})
		}
	}
	for text := range unused {
		t.Errorf("keyed names %q, which is nowhere", text)
	}
}

// conditions names the conditions on a project in SQL and on the page that are not about the owner of a
// reservation or a lease, by their lines.
var conditions = map[string]string{
	`cmd/almanacd/policy.go: flags.StringToStringVar(&t.target, "target", nil, "target of the action, such as project_id=ID (default: the user's project)")`:      "a rule of the policy",
	`pkg/dashboard/page/main.js: belongs: one => one.project_id === app.session.project_id,`:                                                                      "it is belongs",
	`pkg/dashboard/page/main.js: if (!list.some(([id]) => id === session.project_id))`:                                                                            "the choice of a project",
	`pkg/store/besteffort.go: Where("request_id IN (?)", tx.Model(&bestEffortRow{}).Select("id").Where("project_id = ? AND over_at = 0", r.ProjectID)).`:          "a best-effort request, which nobody shares",
	`pkg/store/besteffort.go: list, err := s.bestEffort(ctx, func(tx *gorm.DB) *gorm.DB { return tx.Where("project_id = ? AND request_key = ?", project, key) })`: "a best-effort request, which nobody shares",
	`pkg/store/besteffort.go: found = found.Where("project_id = ?", q.ProjectID)`:                                                                                 "a best-effort request, which nobody shares",
	`pkg/store/besteffort.go: marked = marked.Where("project_id = ?", q.ProjectID)`:                                                                               "a best-effort request, which nobody shares",
	"pkg/store/commit.go: set += \" WHERE `project_id` = ?\"":                                                                                                     "what a project holds",
	`pkg/store/keys.go: return db.Where("project_id = ? AND idempotency_key = ?", projectID, key).Find(&rows).Error`:                                              "the idempotency keys of a project",
	`pkg/store/owner.go: func owned(found *gorm.DB, project string) *gorm.DB { return found.Where("project_id = ?", project) }`:                                   "it is BelongsTo in SQL",
	`pkg/store/owner.go: return found.Where("project_id IN ?", projects)`:                                                                                         "it is BelongsTo in SQL",
	`pkg/store/past_usage.go: found = found.Where("project_id = ?", project)`:                                                                                     "what a project held",
	`pkg/store/recall.go: if err := f.tx.Where("project_id IN ?", chunk).Order("project_id").Find(&found).Error; err != nil {`:                                    "what a project holds",
}

// SQL and the page cannot call BelongsTo. Each has it in one function.
func TestSQLAndThePageCompareTheOwnerInOnePlace(t *testing.T) {
	unused := maps.Clone(conditions)
	condition := regexp.MustCompile("project_id`? *(?:[!=]?==?|<>|IN\\b)|[!=]== *[\\w.?]*project_id")
	names, err := tracked()
	if err != nil {
		t.Skip("the source is not in a Git repository")
	}
	for _, name := range names {
		page := strings.HasPrefix(name, "pkg/dashboard/page/") && strings.HasSuffix(name, ".js")
		if !page && (!strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "tests/")) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(repository.Root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !condition.MatchString(line) {
				continue
			}
			at := name + ": " + strings.TrimSpace(line)
			if conditions[at] == "" {
				t.Errorf("%s; if it is about the owner of a reservation or a lease, call owned of pkg/store or belongs of the page, else name it in conditions", at)
			}
			delete(unused, at)
		}
	}
	for name := range unused {
		t.Errorf("conditions names %q, which is nowhere", name)
	}
}

func isOwner(e ast.Expr) bool {
	s, is := e.(*ast.SelectorExpr)
	return is && (s.Sel.Name == "ProjectID" || s.Sel.Name == "Project") && types.ExprString(s) != "policy.ProjectID"
}

// isLiteral reports whether an expression is a literal: whether there is a project at all is no comparison.
func isLiteral(e ast.Expr) bool {
	_, is := e.(*ast.BasicLit)
	return is
}
