// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/pem"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// forHosts lists the keys of an entry for several hosts, by driver: {host} stands wherever a key takes it, and no
// key that is a text or a list is left out.
var forHosts = map[string]string{
	"ironic": "node: '{host}'",
	"redfish": "url: 'https://{host}', user: u, password_file: 'pw-{host}', auth: basic, cafile: ca.pem, " +
		"system: '/redfish/v1/Systems/{host}'",
	"ipmi": "address: '{host}', user: u, password_file: 'pw-{host}', privilege: OPERATOR, watts_sensor: dcmi",
	"command": "on: [/bin/true, '{host}'], off: [/bin/true, '{host}'], cut: [/bin/true, '{host}'], " +
		"standby: [/bin/true, '{host}'], status: [/bin/true, '{host}']",
	"simulated": "boot: 1s",
}

// withKeys returns an entry of a driver.
func withKeys(t *testing.T, d driver, keys string) entry {
	t.Helper()
	list, err := readMachines("power.yaml", []byte("machines:\n  - {host: n1, driver: "+d.name+", "+keys+"}\n"))
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %d entries, %v", d.name, len(list), err)
	}
	return list[0]
}

// textKeys returns the keys of an entry that are texts or lists.
func textKeys(d driver) (keys []string) {
	for field := range reflect.TypeOf(d.options()).Elem().Fields() {
		if kind := field.Type.Kind(); !field.Anonymous && (kind == reflect.String || kind == reflect.Slice) {
			keys = append(keys, field.Tag.Get("yaml"))
		}
	}
	return keys
}

// A machine that is opened with {host} in its address, or with a password file from the folder of the process,
// is found to be wrong only when it is switched.
func TestAMachineHasTheNameOfItsHostAndTheFolderOfItsFiles(t *testing.T) {
	folder := t.TempDir()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(folder, "ca.pem"), certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, d := range drivers {
		keys, listed := forHosts[d.name]
		if !listed {
			t.Errorf("forHosts has no entry for the driver %s", d.name)
			continue
		}
		for _, key := range textKeys(d) {
			if !strings.Contains(", "+keys, ", "+key+": ") {
				t.Errorf("the entry of forHosts for the driver %s has no %s", d.name, key)
			}
		}
		machine, err := withKeys(t, d, keys).options.open("n1", folder, &owner{})
		if err != nil {
			t.Errorf("%s: %v", d.name, err)
			continue
		}
		for _, text := range textsIn(reflect.ValueOf(machine), 0) {
			if strings.Contains(text, hostWord) && d.name != "command" { // it puts the name in when it runs a program
				t.Errorf("the machine of the driver %s has %q, without the name of its host", d.name, text)
			}
			if text == "pw-n1" || text == "ca.pem" {
				t.Errorf("the machine of the driver %s has the file %q, which is not in the folder of the machines file", d.name, text)
			}
		}
	}
}

// textsIn returns the texts in a value, and in what it points to.
func textsIn(v reflect.Value, depth int) (texts []string) {
	if depth > 6 {
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		return []string{v.String()}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return textsIn(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			texts = append(texts, textsIn(v.Field(i), depth+1)...)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			texts = append(texts, textsIn(v.Index(i), depth+1)...)
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			texts = append(texts, textsIn(each.Value(), depth+1)...)
		}
	}
	return texts
}

// otherTexts has another text for each that must be one of a few words.
var otherTexts = map[string]string{"basic": "session"}

// varied returns another value for a key of an entry.
func varied(t *testing.T, v reflect.Value) reflect.Value {
	t.Helper()
	other := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		text := v.String() + "x"
		if word, is := otherTexts[v.String()]; is {
			text = word
		}
		other.SetString(text)
	case reflect.Bool:
		other.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		other.SetInt(v.Int() + 1)
	case reflect.Slice:
		other.Set(reflect.AppendSlice(other, v))
		other.Set(reflect.Append(other, reflect.ValueOf("x")))
	default:
		t.Fatalf("teach the test another value of a %s", v.Type())
	}
	return other
}

// A key that open does not hand on is accepted and means nothing.
func TestEachKeyOfAnEntryChangesItsMachine(t *testing.T) {
	folder := t.TempDir()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for _, name := range []string{"ca.pem", "ca.pemx"} {
		if err := os.WriteFile(filepath.Join(folder, name), certificate, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opened := func(o options) []string {
		t.Helper()
		m, err := o.open("n1", folder, &owner{})
		if err != nil {
			t.Fatal(err)
		}
		return valuesIn(reflect.ValueOf(m), 0)
	}
	for _, d := range drivers {
		for field := range reflect.TypeOf(d.options()).Elem().Fields() {
			if field.Anonymous { // the host and the driver
				continue
			}
			was, is := withKeys(t, d, forHosts[d.name]).options, withKeys(t, d, forHosts[d.name]).options
			v := reflect.ValueOf(is).Elem().FieldByIndex(field.Index)
			v.Set(varied(t, v))
			if slices.Equal(opened(was), opened(is)) {
				t.Errorf("another %s makes no other machine of the driver %s", field.Tag.Get("yaml"), d.name)
			}
		}
	}
}

// valuesIn returns the texts, numbers and truth values in a value, and in what it points to.
func valuesIn(v reflect.Value, depth int) (values []string) {
	switch {
	case depth > 6:
		return nil
	case v.CanInt():
		return []string{strconv.FormatInt(v.Int(), 10)}
	case v.Kind() == reflect.Bool:
		return []string{strconv.FormatBool(v.Bool())}
	case v.Kind() == reflect.String:
		return []string{v.String()}
	case v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface:
		if !v.IsNil() {
			return valuesIn(v.Elem(), depth+1)
		}
	case v.Kind() == reflect.Struct:
		for _, inner := range v.Fields() {
			values = append(values, valuesIn(inner, depth+1)...)
		}
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		for i := range v.Len() {
			values = append(values, valuesIn(v.Index(i), depth+1)...)
		}
	}
	return values
}

// inDriver calls do with the nodes of each declaration of a driver's package, or of its tests.
func inDriver(t *testing.T, d driver, tests bool, do func(in ast.Decl, n ast.Node)) {
	t.Helper()
	files, err := filepath.Glob("../../pkg/power/" + d.name + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") != tests {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range parsed.Decls {
			ast.Inspect(in, func(n ast.Node) bool {
				do(in, n)
				return true
			})
		}
	}
}

// Each driver passes the tests of all of them, in its own package, and everywhere: the test that calls them is never skipped.
func TestEachDriverPassesTheTestsOfAllDrivers(t *testing.T) {
	for _, d := range drivers {
		var runs ast.Decl
		inDriver(t, d, true, func(in ast.Decl, _ ast.Node) {
			f, is := in.(*ast.FuncDecl)
			if !is || !strings.HasPrefix(f.Name.Name, "Test") {
				return
			}
			for _, statement := range f.Body.List {
				e, is := statement.(*ast.ExprStmt)
				if !is {
					return
				}
				call, is := e.X.(*ast.CallExpr)
				if is && types.ExprString(call.Fun) == "powertest.Run" && len(call.Args) > 1 && types.ExprString(call.Args[1]) == strconv.Quote(d.name) {
					runs = in
				}
			}
		})
		if runs == nil {
			t.Errorf("no test of pkg/power/%s calls powertest.Run at its beginning", d.name)
			continue
		}
		ast.Inspect(runs, func(n ast.Node) bool {
			if s, is := n.(*ast.SelectorExpr); is && slices.Contains([]string{"Skip", "SkipNow", "Skipf", "Short", "Long"}, s.Sel.Name) {
				t.Errorf("the test of pkg/power/%s that calls powertest.Run has %s: it runs everywhere", d.name, types.ExprString(s))
			}
			return true
		})
	}
}

// ofTheSite are the drivers whose programs the machines file names, and furtherArguments the words with which a list of
// further arguments begins.
var ofTheSite, furtherArguments = []string{"command"}, []string{"chassis", "-v"}

// The packages of Debian and of Red Hat suggest what a driver runs. A driver names its program where it lists the arguments:
// []string{"ipmitool", …} or []string{cmp.Or(o.Program, "ipmitool"), …}.
func TestThePackageSuggestsTheProgramsOfTheDrivers(t *testing.T) {
	recipe, err := os.ReadFile("../../packaging/nfpm/almanac-power.yaml")
	if err != nil {
		t.Fatal(err)
	}
	suggested := regexp.MustCompile(`(?m)^ *suggests: \[(.*)\]$`).FindAllStringSubmatch(string(recipe), -1)
	if len(suggested) == 0 {
		t.Fatal("the recipe of the package suggests nothing")
	}
	for _, d := range drivers {
		runs, programs := false, map[string]bool{}
		inDriver(t, d, false, func(_ ast.Decl, n ast.Node) {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				runs = runs || strings.HasPrefix(types.ExprString(n), "power.RunProgram")
			case *ast.CompositeLit:
				if n.Type == nil || types.ExprString(n.Type) != "[]string" || len(n.Elts) == 0 {
					return
				}
				ast.Inspect(n.Elts[0], func(n ast.Node) bool {
					if text, is := n.(*ast.BasicLit); is && text.Kind == token.STRING {
						if name, _ := strconv.Unquote(text.Value); !slices.Contains(furtherArguments, name) {
							programs[name] = true
						}
					}
					return true
				})
			}
		})
		if !runs {
			continue
		}
		if len(programs) == 0 != slices.Contains(ofTheSite, d.name) {
			t.Errorf("the driver %s runs the programs %v; name each as the first of its arguments, or the driver in ofTheSite if the machines file names them", d.name, programs)
		}
		for program := range programs {
			for _, list := range suggested {
				if !slices.Contains(strings.Split(list[1], ", "), program) {
					t.Errorf("the driver %s runs %s, and a package suggests only %s; if it is no program, add it to furtherArguments", d.name, program, list[1])
				}
			}
		}
	}
}

// Two hosts with one machine would be switched together.
func TestAnEntryThatIsOneMachineIsAlike(t *testing.T) {
	for _, d := range drivers {
		keys := forHosts[d.name]
		if key := withKeys(t, d, keys).options.alike(); key != "" {
			t.Errorf("%s: with {host} everywhere %s makes the hosts alike", d.name, key)
		}
		// Each host has a machine in memory.
		if d.name == "simulated" {
			continue
		}
		same := strings.ReplaceAll(keys, hostWord, "same")
		key := withKeys(t, d, same).options.alike()
		if !slices.Contains(textKeys(d), key) {
			t.Errorf("%s: without {host} the hosts are alike in %q, want a key of the entry", d.name, key)
		}
	}
	// Of the programs each is for one host.
	command, _ := driverNamed("command")
	for _, key := range textKeys(command) {
		keys := strings.Replace(forHosts["command"], key+": [/bin/true, '{host}']", key+": [/bin/true]", 1)
		if got := withKeys(t, command, keys).options.alike(); got != key {
			t.Errorf("a program %s without {host} is alike in %q", key, got)
		}
	}
}
