// SPDX-License-Identifier: Apache-2.0

package service

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// backupCommands returns the commands of the guide for SQLite's backup and restore, as it prints them, with the folders of the
// test in place of those of a machine.
func backupCommands(t *testing.T, folder string) (backup, restore []string) {
	t.Helper()
	block := regexp.MustCompile("(?ms)^ *# (almanacd db (?:backup|restore) [^\n]*)$")
	for _, m := range block.FindAllStringSubmatch(repository.Read(t, repository.OperationsPage), -1) {
		line := strings.NewReplacer("/var/backups/", filepath.Join(folder, "backups")+"/", "$(date +%F)", "DATE").Replace(m[1])
		if strings.HasPrefix(line, "almanacd db backup") {
			backup = append(backup, line)
		} else {
			restore = append(restore, line)
		}
	}
	if len(backup) != 1 || len(restore) != 2 || !strings.HasSuffix(restore[0], " --dry-run") {
		t.Fatalf("the guide has %q and %q", backup, restore)
	}
	return backup, restore
}

// paste runs a printed command in folder.
func paste(t *testing.T, folder, line string) (output string, failed bool) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "-c", line)
	c.Dir, c.Env = folder, append(built.Command(t.Context(), folder).Env, "PATH="+built.Commands()+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	return string(out), err != nil
}

func TestTheBackupAndTheRestoreOfTheGuideWorkAsPrinted(t *testing.T) {
	folder := newServantFolder(t)
	if err := os.Mkdir(filepath.Join(folder, "backups"), 0o750); err != nil {
		t.Fatal(err)
	}
	backup, restore := backupCommands(t, folder)
	s := built.Start(t, folder)
	create := func(name string) {
		t.Helper()
		if _, message, exit := s.Almanac(t, "reservation", "create", name, "--start", "+1h", "--duration", "1h"); exit != 0 {
			t.Fatal(message)
		}
	}
	create("kept")
	out, failed := paste(t, folder, backup[0])
	if failed || !strings.Contains(out, "has 1 reservation, the last change at 20") {
		t.Fatalf("%s: %s", backup[0], out)
	}
	copied := repository.Matches(`(\S+almanac\S*\.db)`, backup[0])[0]
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o640 {
		t.Fatalf("the copy: %v, %v", info, err)
	}
	if out, failed := paste(t, folder, backup[0]); !failed || !strings.Contains(out, "exists; name a new file") {
		t.Errorf("once more: %s", out)
	}
	create("lost")
	if out, failed := paste(t, folder, restore[0]); failed || !strings.Contains(out, "with 2 reservations") || !strings.Contains(out, "would be replaced by") {
		t.Errorf("a dry run while almanacd runs: %s", out)
	}
	if out, failed := paste(t, folder, restore[1]); !failed || !strings.Contains(out, "another almanacd uses the database") {
		t.Errorf("while almanacd runs: %s", out)
	}
	s.Kill() // so that its log is left
	if out, failed := paste(t, folder, restore[1]); failed || !strings.Contains(out, "is replaced by") {
		t.Fatalf("%s: %s", restore[1], out)
	}
	files := ownersOf(t, folder)
	for name, has := range files {
		if strings.HasPrefix(name, "almanac.db") && has != ofServant("0640") {
			t.Errorf("%s is %s, want %s", name, has, ofServant("0640"))
		}
	}
	for _, left := range []string{"almanac.db-wal", "almanac.db.partial"} {
		if files[left] != "" {
			t.Errorf("%s is left", left)
		}
	}
	s = built.Serve(t, asServant(t.Context(), folder))
	list, _, _ := s.Almanac(t, "reservation", "list", "-f", "value", "-c", "Name")
	if strings.TrimSpace(list) != "kept" {
		t.Errorf("after the restore there are %q", list)
	}
	create("new")
	s.Stop(t)
}

func TestARestoreOfWhatIsNoBackupChangesNothing(t *testing.T) {
	folder := built.NewFolder(t, built.TenHosts)
	if out, failed := built.Almanacd(t, folder, nil, "db", "sync"); failed {
		t.Fatal(out)
	}
	whole, err := os.ReadFile(filepath.Join(folder, "almanac.db"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"text": "no database", "empty": "", "half.db": string(whole[:len(whole)/2])} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		out, failed := built.Almanacd(t, folder, nil, "db", "restore", path)
		if !failed || !strings.Contains(out, path+" is no ") {
			t.Errorf("%s: %s", name, out)
		}
	}
	if out, failed := built.Almanacd(t, folder, nil, "db", "restore", filepath.Join(folder, "nowhere.db")); !failed || !strings.Contains(out, "no such file") {
		t.Errorf("a file that does not exist: %s", out)
	}
	if now, err := os.ReadFile(filepath.Join(folder, "almanac.db")); err != nil || string(now) != string(whole) {
		t.Errorf("the database has changed (%v)", err)
	}
	server := []string{"OS_DATABASE__CONNECTION=mysql+pymysql://u:secret@127.0.0.1:1/almanac"}
	for _, verb := range []string{"backup", "restore"} {
		if out, failed := built.Almanacd(t, folder, server, "db", verb, "x.db"); !failed || !strings.Contains(out, "the database is on a server") {
			t.Errorf("%s: %s", verb, out)
		}
	}
}
