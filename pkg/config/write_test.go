// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/config"
)

var update = flag.Bool("update", false, "write the sample configuration file instead of comparing it")

func sample(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := config.Sample(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheCommittedSampleIsUpToDate(t *testing.T) {
	golden := filepath.Join("..", "..", "etc", "almanac", "almanac.conf.sample")
	if *update {
		if err := os.WriteFile(golden, []byte(sample(t)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), sample(t)); diff != "" {
		t.Errorf("run go test ./pkg/config -update (-committed +generated):\n%s", diff)
	}
}

var commentedOption = regexp.MustCompile(`(?m)^#(\w+ =)`)

func TestTheSampleUncommentedIsTheDefaults(t *testing.T) {
	text := commentedOption.ReplaceAllString(sample(t), "$1")
	got, err := load(t, text)
	if err != nil {
		t.Fatal(err)
	}
	got.Folder = ""
	if diff := cmp.Diff(defaults(t), got, unexported); diff != "" {
		t.Errorf("configuration (-defaults +sample):\n%s", diff)
	}
}

func TestTheSampleOfASectionIsItsPartOfTheSample(t *testing.T) {
	var parts []string
	whole := sample(t)
	for _, header := range regexp.MustCompile(`(?m)^\[(\w+)\]$`).FindAllStringSubmatch(whole, -1) {
		var b bytes.Buffer
		if err := config.SampleSection(&b, strings.ToUpper(header[1])); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, b.String())
	}
	_, want, _ := strings.Cut(whole, "\n\n")
	if diff := cmp.Diff(want, strings.Join(parts, "\n")); diff != "" {
		t.Errorf("sections (-of the sample +each alone):\n%s", diff)
	}
	err := config.SampleSection(&bytes.Buffer{}, "databse")
	if err == nil || err.Error() != `there is no section "databse"; did you mean "database"?` {
		t.Errorf("an unknown section: %v", err)
	}
}

func TestTheMinimalSampleFitsAScreenAndIsValidAsItIs(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(config.MinimalSample, "\n"), "\n")
	if len(lines) > 24 {
		t.Errorf("it has %d lines", len(lines))
	}
	for _, line := range lines {
		if len(line) > 80 {
			t.Errorf("longer than 80: %q", line)
		}
	}
	cfg, err := load(t, config.MinimalSample)
	if err != nil || cfg.Inventory.Source != config.SourceOpenStack || cfg.API.AuthStrategy != "keystone" {
		t.Errorf("got %+v, %+v and error %v", cfg.Inventory, cfg.API, err)
	}
}

func TestShowHasTheLinesOfTheSample(t *testing.T) {
	var want string
	for line := range strings.Lines(commentedOption.ReplaceAllString(sample(t), "$1")) {
		if line != "\n" && line[0] != '#' {
			want += line
		}
	}
	var shown bytes.Buffer
	if err := config.Show(&shown, defaults(t)); err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(shown.String(), "\n\n", "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-sample +shown):\n%s", diff)
	}
}

// A list of names as a default is on one line, however long it is.
func TestTheSampleFitsATerminal(t *testing.T) {
	for line := range strings.Lines(sample(t)) {
		if len(line) > 80 && !strings.HasPrefix(line, "#enabled_filters") {
			t.Errorf("longer than 79: %q", line)
		}
	}
}

// connectionShown returns the connection as Show writes it.
func connectionShown(t *testing.T, connection string) string {
	t.Helper()
	cfg := defaults(t)
	cfg.Database.Connection = connection
	var b bytes.Buffer
	if err := config.Show(&b, cfg); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(b.String(), "\nconnection = ")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

func TestShowHidesPasswordsAndNothingElseWhereItCan(t *testing.T) {
	for connection, want := range map[string]string{
		"sqlite:///var/almanac.db":                                        "sqlite:///var/almanac.db",
		"file:almanac.db?mode=ro":                                         "file:almanac.db?mode=ro",
		"file:almanac.db?mode=ro&_auth_pass=hunter2":                      "file:almanac.db?mode=ro&_auth_pass=***",
		"mysql+pymysql://almanac:hunter2@db.example/almanac?charset=utf8": "mysql+pymysql://almanac:***@db.example/almanac?charset=utf8",
		"postgresql://almanac@db/almanac?password=hunter2&sslmode=off":    "postgresql://almanac@db/almanac?password=***&sslmode=off",
		"postgresql://almanac@[::1]:5432/almanac":                         "postgresql://almanac@[::1]:5432/almanac",
		"rabbit://u:hunter2@h1:5672,v:hunter2@h2:5672//vhost?ssl=1":       "rabbit://u:***@h1:5672,v:***@h2:5672//vhost?ssl=1",
		"mysql+pymysql://u:hunter2@db1:3306,db2,[fd00::2]:3307/almanac":   "mysql+pymysql://u:***@db1:3306,db2,[fd00::2]:3307/almanac",
		"mysql://u:p:hunter2@db/almanac":                                  "mysql://u:***@db/almanac",
		// Not a URL, or not encoded as one: Show hides everything.
		"mysql://u:hun@ter2@db/almanac":           "***",
		"mysql://u:hun/ter2@db/almanac":           "***",
		"mysql://u:hun,ter2@db/almanac":           "***",
		"mysql://u:1#hunter2@db/almanac":          "***",
		"almanac:hunter2@tcp(db)/almanac":         "***",
		"host=db user=almanac password='hunter2'": "***",
		"": "",
	} {
		if got := connectionShown(t, connection); got != want {
			t.Errorf("%s is shown as %s, want %s", connection, got, want)
		}
	}
}

func TestWhatIsShownIsReadAsItself(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringMatching(`["' ]?([^\n]|\\?\$[a-z$]?)*["' ]?`).
			Filter(func(s string) bool { return !strings.Contains(s, "://") }) // the password of a URL is not shown
		literal := strings.NewReplacer(`\$`, `\\$`, "$", "$$")
		variables := map[string]string{
			"OS_DEFAULT__LOG_FILE": literal.Replace(line.Draw(t, "log_file")),
			"OS_NOAUTH__USER_ID":   literal.Replace("u" + line.Draw(t, "user_id")),
			"OS_NOAUTH__ROLES":     literal.Replace(line.Draw(t, "roles")),
		}
		want, err := config.Load(nil, nil, variables)
		if err != nil {
			t.Fatal(err)
		}
		var shown bytes.Buffer
		if err := config.Show(&shown, want); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "shown.conf")
		if err := os.WriteFile(path, shown.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := config.Load([]string{path}, nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, shown.String())
		}
		want.Folder = dir // the folder of the second file
		if diff := cmp.Diff(want, got, unexported); diff != "" {
			t.Fatalf("configuration (-before +after):\n%s", diff)
		}
	})
}
