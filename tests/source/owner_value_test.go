// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/repository"
)

// builtPackage is a package as go list prints it.
type builtPackage struct {
	ImportPath, Dir, Export string
	GoFiles, Imports        []string
}

// builtPackages returns the packages of these patterns and all that they import, by their import path.
func builtPackages(t *testing.T, patterns ...string) map[string]builtPackage {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Imports"}, patterns...)...)
	command.Dir = repository.Root
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, complaint.Bytes())
	}
	all := map[string]builtPackage{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p builtPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
		for _, name := range p.GoFiles {
			if strings.HasPrefix(p.ImportPath, module) { // a result in the cache of go test depends on the files that a test looks at
				_, _ = os.Stat(filepath.Join(p.Dir, name))
			}
		}
	}
}

// ownerUses are the uses of the owner of a reservation or a lease, each with a position: the functions that use its project
// as a value, as "package: function", and the calls that ask who it is, as "package: function: call".
type ownerUses struct{ values, asked map[string]token.Position }

// ask adds a call, and the second of the same text as "… again".
func (u *ownerUses) ask(call string, at token.Position) {
	for u.asked[call] != (token.Position{}) {
		call += " again"
	}
	u.asked[call] = at
}

// foundUses are those that a test before has found.
var foundUses *ownerUses

func ownersUsed(t *testing.T) *ownerUses {
	t.Helper()
	if foundUses != nil {
		return foundUses
	}
	all, set, found := builtPackages(t, "./cmd/..."), token.NewFileSet(), &ownerUses{map[string]token.Position{}, map[string]token.Position{}}
	from := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(all[path].Export) })
	for path, p := range all {
		if path != module+"/reservation" && !slices.Contains(p.Imports, module+"/reservation") {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		info := types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{}}
		if _, err := (&types.Config{Importer: from}).Check(path, set, files, &info); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, d := range file.Decls {
				in := strings.TrimPrefix(path, module+"/") + ": " + functionOf(d)
				ast.Inspect(d, func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.SelectorExpr:
						if ownsProject(info.Selections[n]) {
							found.values[in] = set.Position(n.Pos())
						}
						if asksOwner(info.Uses[n.Sel]) {
							found.ask(in+": "+types.ExprString(n), set.Position(n.Pos()))
						}
					case *ast.CallExpr:
						if f, is := n.Fun.(*ast.Ident); is && asksOwner(info.Uses[f]) {
							found.ask(in+": "+types.ExprString(n), set.Position(n.Pos()))
						}
					}
					return true
				})
			}
		}
	}
	foundUses = found
	return found
}

// asksOwner reports whether a function is BelongsTo, also that of an interface, or Projects, or one of them in SQL.
func asksOwner(o types.Object) bool {
	if f, is := o.(*types.Func); !is || f.Pkg() == nil {
		return false
	}
	switch in := strings.TrimPrefix(o.Pkg().Path(), module+"/"); o.Name() {
	case "BelongsTo":
		return true
	case "Projects":
		return in == "reservation"
	case "owned", "ownedByAny":
		return in == "pkg/store"
	}
	return false
}

// ownsProject reports whether a selection is the field ProjectID of a reservation or a lease.
func ownsProject(s *types.Selection) bool {
	if s == nil || s.Obj().Name() != "ProjectID" {
		return false
	}
	of := s.Recv()
	if p, is := of.(*types.Pointer); is {
		of = p.Elem()
	}
	return slices.Contains([]string{"Reservation", "Lease", "LeaseRecord"}, strings.TrimPrefix(of.String(), module+"/reservation."))
}

// functionOf returns the name of a function, with its receiver; empty for another declaration.
func functionOf(d ast.Decl) string {
	f, is := d.(*ast.FuncDecl)
	if !is {
		return ""
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	return strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") + "." + f.Name.Name
}

// valued has the functions that use the project of a reservation or a lease as a value, by the reason why the one project
// is meant and not each of Projects. Whoever lets projects share a reservation reads this list.
var valued = map[string][]string{
	"it is shown or sent to those who may see the reservation": {
		"pkg/api/calendar: claimOf",
		"pkg/api/events: follower.tell",
		"pkg/api/reservations: grouped",
		"pkg/api/serving: nameBlockers",
		"pkg/api/v1: Of",
		"pkg/blazar: bodyOf",
		"reservation/notice: requestOf",
		"reservation/enforcement: Checker.request",
	},
	"it is copied, with the rest of the record": {
		"pkg/api/events: eventOf",
		"pkg/store: rowOfLease",
		"reservation: OwnLease",
	},
	"it is the target of a policy rule": {
		"pkg/api/leases: leases.find",
		"pkg/api/reservations: API.find",
		"pkg/api/reservations: groups.groupLoading",
		"pkg/api/serving: Asker.SeesHosts",
		"pkg/api/serving: Asker.Sees",
		"pkg/api/reservations: API.change",
	},
	"what the reservation holds is charged to it": {
		"reservation/accounting: Account.Add",
		"reservation/accounting: Days",
		"reservation/booking: Commit.Usages",
		"reservation/booking: Commit.usageOf",
		"reservation/booking: decider.concerning",
		"reservation/booking: Changes.viewOf",
		"reservation/booking: decider.bookFreed",
		"reservation/booking: freedBy",
		"reservation/planning: serving.helps",
		"reservation/planning: serving.book",
		"reservation/booking: Leases.modifyLease",
		"reservation/booking: Recurring.modifySeries",
		"reservation/booking: Leases.viewOfLease",
		"reservation/booking: NewTakeOver",
		"reservation/booking: decider.enter",
		"reservation/booking: decider.enterChanges",
		"reservation/booking: memory.addLive",
		"reservation/booking: memory.countMore",
		"reservation/booking: memory.claimedAnew",
		"reservation/booking: memory.forget",
		"reservation/booking: memory.load",
		"reservation/booking: memory.replace",
		"reservation/booking: memory.versioned",
		"reservation/booking: byProject",
		"reservation/booking: decider.enterMoves",
		"reservation/booking: writer.beginOf",
		"reservation/planning: placing.bound",
		"reservation/planning: placing.place",
		"reservation/planning: placing.searches",
		"reservation/booking: writer.claimingKeys",
		"reservation/booking: writer.commitOf",
		"reservation/booking: writer.keepsLimit",
	},
	"projects take turns": {
		"reservation/booking: line.add",
		"reservation/booking: line.remove",
		"reservation/booking: openings.learn",
		"reservation/booking: Bookings.NextRoom",
	},
	"changes of what it is charged with are stored together": {
		"reservation/booking: writer.commitNew",
	},
	"its counts are read, as ownedByAny of pkg/store": {
		"reservation/booking/memory: Records.Recall",
		"reservation/booking/memory: Records.raised",
	},
	"an idempotency key is one of the project of the request": {
		"reservation/booking: KeyUse.key",
	},
	"its rules decide whether the reservation may be": {
		"reservation/enforcement: Checker.Ask",
		"reservation/enforcement: Checker.Concerns",
		"reservation/enforcement: Checker.Withdraw",
	},
	"it is logged, or in a sentence": {
		"pkg/app: removing.unused",
		"reservation/staging/controller: Controller.remark",
		"reservation/upkeep/openstack: Backend.Admit",
		"reservation/upkeep/openstack: Backend.Expel",
		"reservation/upkeep: Enforcer.rehome",
		"reservation/upkeep: Enforcer.warn",
		"reservation/upkeep: Options.events",
		"reservation/upkeep: healing.heal",
		"reservation/upkeep: judgement.stranger",
	},
	"Keystone may no longer know it": {
		"reservation/upkeep: Doctor.gather",
		"reservation/upkeep: judgement.promises",
		"reservation/upkeep: judgement.vanishedOwner",
	},
	"Nova or Neutron has the objects of the reservation for one project": {
		"reservation/fence: common",
		"reservation/fence: plan.mirror",
		"reservation/fence: plan.prepare",
		"reservation/upkeep/openstack: Backend.eachFlavor",
		"reservation/upkeep: holder",
	},
	"it is owner.go": {
		"reservation: Lease.BelongsTo",
		"reservation: Reservation.BelongsTo",
		"reservation: Reservation.Projects",
	},
}

// A comparison is in compared, a key in keyed; this is each other use, and these once more.
func TestEachUseOfTheProjectOfAReservationHasAReason(t *testing.T) {
	reasons := headings(t, valued)
	used := ownersUsed(t).values
	for f, at := range used {
		if reasons[f] == "" {
			t.Errorf("%v: %s uses the project of a reservation: call BelongsTo or Projects, or add it to valued with a reason", at, f)
		}
	}
	for f := range reasons {
		if _, is := used[f]; !is {
			t.Errorf("valued names %s, which uses the project of no reservation", f)
		}
	}
}

// headings returns the heading of each entry of lists, and fails the test for one that stands under two.
func headings(t *testing.T, lists map[string][]string) map[string]string {
	t.Helper()
	of := map[string]string{}
	for heading, entries := range lists {
		for _, entry := range entries {
			if of[entry] != "" {
				t.Errorf("%s stands under %q and %q", entry, of[entry], heading)
			}
			of[entry] = heading
		}
	}
	return of
}
