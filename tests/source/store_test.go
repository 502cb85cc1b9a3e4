// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/store"
)

// untestedCalls has the methods of the store that storetest does not call, and why.
var untestedCalls = map[string]string{
	"CopyTo":   "it is about two databases: pkg/store.TestACopyHasEveryRowOfEveryTable",
	"Sizes":    "pkg/store.TestACopyHasEveryRowOfEveryTable",
	"Unused":   "pkg/store.TestACopyIsRefusedWholeUnlessTheOtherDatabaseIsEmptyAndBothSchemasAreKnown",
	"Migrate":  "each store of storetest is migrated: pkg/store.TestMigrationsApplyOnceAndAreReported",
	"Status":   "pkg/store.TestMigrationsApplyOnceAndAreReported",
	"Pending":  "pkg/store.TestMigrationsApplyOnceAndAreReported",
	"Ping":     "a model in memory answers always: pkg/store.TestARestartOfTheServerIsSurvived",
	"Retries":  "a count for the metrics: pkg/store.TestADeadlockIsRunAgain",
	"Shared":   "it is about the address of the database",
	"Writable": "pkg/store.TestAServerThatIsReadOnlySaysSoAndIsRead",
}

// storetestTypes returns the types of the code of tests/storetest, and the package of the model in memory.
func storetestTypes(t *testing.T) (info types.Info, memory *types.Package) {
	t.Helper()
	const path, model = module + "/tests/storetest", module + "/reservation/booking/memory"
	all, set := builtPackages(t, "./tests/storetest", "./reservation/booking/memory"), token.NewFileSet()
	from := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(all[path].Export) })
	var files []*ast.File
	for _, name := range all[path].GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(all[path].Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info = types.Info{Instances: map[*ast.Ident]types.Instance{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	if _, err := (&types.Config{Importer: from}).Check(path, set, files, &info); err != nil {
		t.Fatal(err)
	}
	memory, err := from.Import(model)
	if err != nil {
		t.Fatal(err)
	}
	return info, memory
}

// A call that storetest does not make is one that MariaDB may answer in another way than SQLite.
func TestEachCallOfTheStoreIsTestedOnEachDatabase(t *testing.T) {
	called := map[string]bool{}
	info, _ := storetestTypes(t)
	for _, s := range info.Selections {
		if s.Kind() == types.MethodVal && types.IsInterface(s.Recv()) {
			called[s.Obj().Name()] = true
		}
	}
	of := reflect.TypeFor[*store.Store]()
	for method := range of.Methods() {
		why := untestedCalls[method.Name]
		switch {
		case !called[method.Name] && why == "":
			t.Errorf("storetest does not call %s: add a test there, or a reason to untestedCalls", method.Name)
		case called[method.Name] && why != "":
			t.Errorf("storetest calls %s, and untestedCalls states that it does not: %s", method.Name, why)
		}
	}
	for name := range untestedCalls {
		if _, has := of.MethodByName(name); !has {
			t.Errorf("untestedCalls names %s, which the store does not have", name)
		}
	}
}

// notInMemory has the parts of storetest that the model in memory does not offer, by the reason.
var notInMemory = map[string][]string{
	"the simulator has one replica, which nobody else stops":    {"clock", "leases", "presence", "ending", "io.Closer"},
	"nobody reads the messages of a simulation, or its history": {"outbox", "hooks", "auditor", "decisions", "pastReader", "phases"},
	"a simulation ends before anything is purged":               {"keyPurger", "purger"},
	"the operator of a simulation sets nothing":                 {"settings", "takesOver"},
	"a simulation does without it, or has a model of its own": {
		"power", "instanceRecords", "bestEffort", "packingRuns", "pkg/eviction.Records", "reservation/staging/controller.Records", "reservation/enforcement.Records",
	},
}

// A part that the model lacks is one that its tests skip in silence.
func TestTheModelInMemoryOffersEachPartOfAStoreOrHasAReason(t *testing.T) {
	const path = module + "/tests/storetest"
	info, memory := storetestTypes(t)
	reasons := map[string]string{}
	for why, parts := range notInMemory {
		for _, part := range parts {
			reasons[part] = why
		}
	}
	records := types.NewPointer(memory.Scope().Lookup("Records").Type())
	parts := map[string]bool{}
	for id, instance := range info.Instances {
		if id.Name != "offered" {
			continue
		}
		part := instance.TypeArgs.At(0)
		parts[strings.TrimPrefix(strings.TrimPrefix(part.String(), path+"."), module+"/")] = types.Implements(records, part.Underlying().(*types.Interface))
	}
	for part, offered := range parts {
		why := reasons[part]
		switch {
		case !offered && why == "":
			t.Errorf("the model in memory does not offer %s: add it there, or a reason to notInMemory", part)
		case offered && why != "":
			t.Errorf("the model in memory offers %s, and notInMemory states that it does not: %s", part, why)
		}
	}
	for part := range reasons {
		if _, is := parts[part]; !is {
			t.Errorf("notInMemory names %s, which storetest does not ask for", part)
		}
	}
}
