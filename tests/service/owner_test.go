// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// servant is the user as which tests that run as root run the service.
const servant = 65534

// asServant prepares almanacd as user servant, if the test runs as root; otherwise as the user of the test.
func asServant(ctx context.Context, folder string, arguments ...string) *exec.Cmd {
	c := built.Command(ctx, folder)
	c.Args = append(c.Args, arguments...)
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: servant, Gid: servant}}
	}
	return c
}

// newServantFolder is newFolder with a folder of user servant, and commands that this user can run.
func newServantFolder(t *testing.T) string {
	t.Helper()
	folder := built.NewFolder(t, built.TenHosts)
	if os.Geteuid() != 0 {
		return folder
	}
	for _, path := range []string{built.Commands(), filepath.Dir(folder)} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{folder, filepath.Join(folder, "hosts.yaml")} {
		if err := os.Chown(path, servant, servant); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// ownersOf returns the names of the files in folder, each with its owner, group and mode.
func ownersOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		of := info.Sys().(*syscall.Stat_t)
		all[entry.Name()] = fmt.Sprintf("%d:%d %04o", of.Uid, of.Gid, info.Mode().Perm())
	}
	return all
}

// ofServant is what ownersOf returns for each file that user servant shall be able to use.
func ofServant(mode string) string {
	if os.Geteuid() != 0 {
		return fmt.Sprintf("%d:%d %s", os.Geteuid(), os.Getegid(), mode)
	}
	return fmt.Sprintf("%d:%d %s", servant, servant, mode)
}

func TestWhatRootStartsOnceLeavesNothingThatTheServiceCannotUse(t *testing.T) {
	folder := newServantFolder(t)
	if out, failed := built.Almanacd(t, folder, nil, "db", "sync"); failed {
		t.Fatal(out)
	}
	s := built.Start(t, folder)
	if _, message, exit := s.Almanac(t, "reservation", "create", "first", "--duration", "1h"); exit != 0 {
		t.Fatal(message)
	}
	for name, has := range ownersOf(t, folder) {
		if want := ofServant("0640"); strings.HasPrefix(name, "almanac.db") && has != want {
			t.Errorf("%s is %s, want %s", name, has, want)
		}
	}
	s.Stop(t)
	s = built.Serve(t, asServant(context.WithoutCancel(t.Context()), folder))
	if _, message, exit := s.Almanac(t, "reservation", "create", "second", "--duration", "1h"); exit != 0 {
		t.Error(message)
	}
	s.Stop(t)
}

// The test has another user and other folders, and a user who is not root needs no setpriv.
func TestTheServiceStartsWithoutSystemdAsPrinted(t *testing.T) {
	folder := newServantFolder(t)
	printed := repository.Matches(`(?m)^# (setpriv .*)$`, repository.Read(t, repository.InstallPage))
	if len(printed) != 1 {
		t.Fatalf("the page has %q", printed)
	}
	conf := filepath.Join(folder, "almanac.conf")
	if err := os.WriteFile(conf, []byte("[inventory]\nhosts_file = hosts.yaml\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	line := strings.NewReplacer("--reuid almanac --regid almanac", fmt.Sprintf("--reuid %d --regid %d", servant, servant),
		"/var/lib/almanac", folder, "/etc/almanac/almanac.conf", conf).Replace(printed[0])
	if os.Geteuid() != 0 {
		line = line[strings.Index(line, "sh -c"):]
	}
	process := built.Command(context.WithoutCancel(t.Context()), folder)
	process.Path, process.Args = "/bin/sh", []string{"sh", "-c", "exec " + line}
	process.Env = append(process.Env, "PATH="+built.Commands()+":"+os.Getenv("PATH"))
	s := built.Serve(t, process)
	if _, message, exit := s.Almanac(t, "reservation", "create", "first", "--duration", "1h"); exit != 0 {
		t.Error(message)
	}
	if has := ownersOf(t, folder)["almanac.db"]; has != ofServant("0640") {
		t.Errorf("the database is %s", has)
	}
	s.Stop(t)
}

func TestADatabaseThatTheServiceCannotWriteStopsTheStart(t *testing.T) {
	for name, unusable := range map[string]string{"the file": "almanac.db", "the lock": "almanac.db.lock"} {
		t.Run(name, func(t *testing.T) {
			folder := newServantFolder(t)
			built.Start(t, folder).Stop(t)
			path := filepath.Join(folder, unusable)
			if err := os.Chmod(path, 0o440); err != nil {
				t.Fatal(err)
			}
			wants := []string{"cannot write the database", unusable + ", which belongs to ", "mode 0440", "chown ", "permission denied"}
			if os.Geteuid() == 0 {
				if err := os.Chown(path, 0, 0); err != nil {
					t.Fatal(err)
				}
				wants = append(wants, "user nobody cannot write", "which belongs to root:root")
			}
			ctx, cancel := context.WithTimeout(t.Context(), built.Patience)
			defer cancel()
			for _, arguments := range [][]string{{}, {"db", "status"}} {
				out, err := asServant(ctx, folder, arguments...).CombinedOutput()
				if err == nil || ctx.Err() != nil {
					t.Fatalf("almanacd %v: %v\n%s", arguments, err, out)
				}
				for _, want := range wants {
					if !strings.Contains(string(out), want) {
						t.Errorf("almanacd %v: the message does not contain %q:\n%s", arguments, want, out)
					}
				}
				if strings.Contains(string(out), "retrying") {
					t.Errorf("almanacd %v tries again:\n%s", arguments, out)
				}
			}
		})
	}
}

func TestAConfigurationThatTheUserMayNotReadIsAnErrorThatNamesWhoMay(t *testing.T) {
	folder := newServantFolder(t)
	path := filepath.Join(folder, "etc", "almanac.conf")
	if err := os.Mkdir(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	wants := []string{"the configuration file cannot be read by user ", "run this as root", path + ": permission denied"}
	if os.Geteuid() == 0 { // the folder as the package makes it, with a group that the user is not in
		if err := os.Chown(filepath.Dir(path), 0, 1); err != nil {
			t.Fatal(err)
		}
		wants = append(wants, "user nobody;", "or as a member of group daemon")
	} else if err := os.Chmod(filepath.Dir(path), 0); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{{}, {"config", "validate"}, {"config", "show"}, {"db", "status"}, {"policy", "check", "--rule", "all", "--roles", "member"}, {"bootstrap", "keystone"}} {
		out, err := asServant(t.Context(), folder, append([]string{"--config-file", path}, arguments...)...).CombinedOutput()
		if err == nil {
			t.Errorf("almanacd %v does without it:\n%s", arguments, out)
		}
		for _, want := range wants {
			if !strings.Contains(string(out), want) {
				t.Errorf("almanacd %v: the message does not contain %q:\n%s", arguments, want, out)
			}
		}
	}
	if _, created := ownersOf(t, folder)["almanac.db"]; created {
		t.Error("almanacd has made a database")
	}
	_ = os.Chmod(filepath.Dir(path), 0o750) // so that the test can remove it
}
