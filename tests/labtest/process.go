// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a server that dies with the test process.
type process struct {
	command *exec.Cmd
	log     string
	ended   chan struct{}
}

// starter runs functions on an operating system thread that lives as long as the test process. A
// child receives its parent death signal when the thread that forked it ends; Go may end threads at
// any time.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for do := range work {
			do()
		}
	}()
	return work
})

// launch starts a server as the account (nil is the caller's own); its output goes to the log file.
func launch(account *syscall.Credential, log, name string, args ...string) (*process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &process{command: exec.Command(name, args...), log: log, ended: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = file, file
	// A change of user clears the parent death signal, so the server must not change it by itself
	// (as with --user); Go sets the signal afterwards.
	p.command.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true,
		Credential: account,
	}
	started := make(chan error)
	starter() <- func() { started <- p.command.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // the exit status of a killed server does not matter
	}()
	return p, nil
}

// answers waits until the server answers; its error contains the end of the log.
func (p *process) answers(limit time.Duration, try func() error) error {
	gone := errors.New("it has ended")
	var last error
	err := await(limit, func() error {
		select {
		case <-p.ended:
			last = gone
			return nil
		default:
			last = nil
			return try()
		}
	})
	if err = errors.Join(err, last); err == nil {
		return nil
	}
	return fmt.Errorf("%s does not answer: %w\n%s", p.command.Path, err, tail(p.log))
}

func (p *process) kill() {
	_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) // it may have ended already
	<-p.ended
}

// stop shuts the server down cleanly, or kills it and returns an error.
func (p *process) stop(limit time.Duration) error {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.ended:
		return nil
	case <-time.After(limit):
		p.kill()
		return fmt.Errorf("%s did not stop within %v and was killed\n%s", p.command.Path, limit, tail(p.log))
	}
}

// tail returns the last lines of a log.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// mysqlAccount returns the user mysql if the caller is root, since mariadbd refuses to run as root.
func mysqlAccount(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	account, err := user.Lookup("mysql")
	if err != nil {
		t.Fatalf("who runs mariadbd: %v", err)
	}
	uid, errUser := strconv.ParseUint(account.Uid, 10, 32)
	gid, errGroup := strconv.ParseUint(account.Gid, 10, 32)
	if err := errors.Join(errUser, errGroup); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
