// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
	"testing"
)

// compared names the comparisons with a project that are not about the owner of a reservation or a lease.
var compared = map[string]string{
	"reservation: r.ProjectID == project":                      "it is BelongsTo",
	"reservation: l.ProjectID == project":                      "it is BelongsTo",
	"reservation/address: there[i].Project != h.Project":       "a floating IP, below the package reservation",
	"reservation/address: f.Project == h.Project":              "a floating IP, below the package reservation",
	"filters: value == r.ProjectID":                            "an aggregate is for the project",
	"filters: project == r.ProjectID":                          "an aggregate is for the project",
	"pkg/api/instances: r.ProjectID == by.ProjectID":           "a best-effort request, which nobody shares",
	"pkg/api/instances: i.ProjectID == project":                "an instance",
	"pkg/api/instances: project == by.ProjectID":               "a decision on an instance",
	"pkg/api/reservations: project != by.ProjectID":            "the project that the caller asks about",
	"pkg/api/calendar: u.project != by.ProjectID":              "the project that the caller asks about",
	"pkg/api/leases: q.ProjectID != by.ProjectID":              "the project that the caller asks about",
	"reservation/besteffort/openstack: a.ProjectID == project": "an application credential",
	"reservation/besteffort/requests: p.ProjectID != project":  "a server of a best-effort request",
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

func isOwner(e ast.Expr) bool {
	s, is := e.(*ast.SelectorExpr)
	return is && (s.Sel.Name == "ProjectID" || s.Sel.Name == "Project") && types.ExprString(s) != "policy.ProjectID"
}

// isLiteral reports whether an expression is a literal: whether there is a project at all is no comparison.
func isLiteral(e ast.Expr) bool {
	_, is := e.(*ast.BasicLit)
	return is
}
