// SPDX-License-Identifier: Apache-2.0

// Package servicelog opens the log of a process where oslo.log would have it.
package servicelog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslolog"
	"github.com/almanac-cloud/almanac/pkg/owner"
)

// Log is the log of a process, in oslo's format or JSON.
type Log struct {
	*slog.Logger
	level slog.LevelVar
	file  *logFile // nil if the log does not go to a file
}

// Open opens the configured log: in its file, or else in fallback. The file is log_file, below
// log_dir unless it is absolute; with log_dir alone it is program.log there, as in oslo.log
// (oslo_log/log.py, _get_log_file_path). Each record passes through the handlers that adding returns for the
// one that writes.
func Open(c config.Default, program string, fallback io.Writer, adding ...func(slog.Handler) slog.Handler) (*Log, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("determine this machine's name for the log: %w", err)
	}
	l, out := &Log{}, fallback
	if path := logPath(c, program); path != "" {
		l.file = &logFile{path: path}
		out = l.file
	}
	var handler slog.Handler = oslolog.New(out, oslolog.Options{
		Name: "almanac", Level: &l.level, PID: os.Getpid(), Host: host, JSON: c.UseJSON,
	})
	for _, add := range adding {
		handler = add(handler)
	}
	l.Logger = slog.New(handler)
	l.SetLevel(c)
	if err := l.Reopen(); err != nil {
		return nil, err
	}
	return l, nil
}

// TellConfiguration logs the options that a process ignores, all in one line, and the warnings.
func (l *Log) TellConfiguration(from config.Origin, warnings []string) {
	if notice := from.Notice(); notice != "" {
		l.Info("options that mean nothing to Almanac are ignored; config validate lists the reasons", "options", notice)
	}
	for _, warning := range warnings {
		l.Warn("configuration: " + warning)
	}
}

// SetLevel applies the option debug, which may change while the process runs.
func (l *Log) SetLevel(c config.Default) {
	if c.Debug {
		l.level.Set(slog.LevelDebug)
	} else {
		l.level.Set(slog.LevelInfo)
	}
}

// Reopen opens the file again, so that a file that was moved away gets no more lines. If that
// fails, the log continues in the open file.
func (l *Log) Reopen() error {
	if l.file == nil {
		return nil
	}
	return l.file.reopen()
}

// Close closes the file.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.close()
}

// Check returns an Invalid fault if the folder of the program's log does not exist.
func Check(c config.Default, program string) error {
	folder := filepath.Dir(logPath(c, program))
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !info.IsDir():
		return fault.Field("[DEFAULT] log_dir", "there is no folder %s for the log; create it, or name another one", folder)
	case errors.Is(err, fs.ErrPermission):
		return nil // whoever validates is not the user of the service
	}
	return err
}

// logPath returns the path of the log file; "" for standard error.
func logPath(c config.Default, program string) string {
	switch {
	case c.LogDir == "" || filepath.IsAbs(c.LogFile):
		return c.LogFile
	case c.LogFile == "":
		return filepath.Join(c.LogDir, program+".log")
	default:
		return filepath.Join(c.LogDir, c.LogFile)
	}
}

// logFile is a file that can be reopened between two writes.
type logFile struct {
	path string
	mu   sync.Mutex
	file *os.File
}

// Write implements io.Writer. It writes to the file that is open now.
func (f *logFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Write(p)
}

// reopen opens the file at its path again, and closes the one that was open.
func (f *logFile) reopen() error {
	file, err := owner.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("open [DEFAULT] log_file: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.file
	f.file = file
	if old == nil {
		return nil
	}
	return old.Close()
}

func (f *logFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Close()
}
