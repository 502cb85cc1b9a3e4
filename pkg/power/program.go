package power

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// mostOutput is how much of a program's output is kept, in bytes.
const mostOutput = 64 << 10

// path is the PATH of programs.
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// RunProgram runs a program with its arguments, without a shell and without this process's
// environment, and returns its output. When ctx ends, the program and the processes that it
// has started are killed. Errors are Unavailable and name the program without its arguments,
// which may be confidential.
func RunProgram(ctx context.Context, argv []string) (string, error) {
	var out, complaint bounded
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Env = []string{"PATH=" + path, "LC_ALL=C", "HOME=/"}
	command.Stdout, command.Stderr = &out, &complaint
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second
	err := command.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return out.String(), fault.New(fault.Unavailable, "%s ended with exit status %d%s", argv[0], ended.ExitCode(), lastLine(complaint.String()))
	}
	switch {
	case ctx.Err() != nil:
		return "", &fault.Error{Kind: fault.Unavailable, Message: argv[0] + " did not end in time", Err: ctx.Err()}
	case errors.Is(err, exec.ErrNotFound):
		return "", fault.New(fault.Unavailable, "the program %s was not found; install it on the agent's machine", argv[0])
	case err != nil:
		return "", &fault.Error{Kind: fault.Unavailable, Message: fmt.Sprintf("%s cannot be run: %v", argv[0], err)}
	}
	return out.String(), nil
}

// lastLine returns the last line of a program's error output.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	line := text[strings.LastIndexByte(text, '\n')+1:]
	return ": " + strings.ToValidUTF8(line[:min(len(line), 300)], "")
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ kept []byte }

func (b *bounded) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), mostOutput-len(b.kept))]...)
	return len(p), nil
}

func (b *bounded) String() string { return string(b.kept) }
