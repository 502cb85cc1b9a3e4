// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gorm.io/gorm/logger"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/tracing"
)

// Check returns an error if this build does not support the connection. It does not connect.
func Check(connection string) error {
	_, err := parseConnection(connection)
	return err
}

// Exists reports whether Open does not create the database: it is on a server, or its file exists.
func Exists(connection string) (bool, error) {
	at, err := parseConnection(connection)
	if err != nil {
		return false, err
	}
	file, isPlace := at.(location)
	if !isPlace {
		return true, nil
	}
	if _, err = os.Stat(file.path); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// parseConnection parses a connection. Its errors contain only the scheme and options, because the
// rest may contain a password.
func parseConnection(connection string) (target, error) {
	if goForm.MatchString(connection) {
		return parseGoForm(connection)
	}
	if strings.HasPrefix(connection, "file:") {
		return parseFileName(connection)
	}
	scheme, rest, isURL := strings.Cut(connection, "://")
	dialect, _, _ := strings.Cut(scheme, "+")
	switch {
	case !isURL:
		return nil, fault.Field("connection", "must be a URL such as mysql+pymysql://almanac:PASSWORD@db.example/almanac or sqlite:///almanac.db")
	case scheme == "sqlite":
		return parseSQLite(rest)
	case dialect == "mysql" || dialect == "mariadb":
		return parseServer(rest)
	}
	return nil, fault.Field("connection", "%s is not supported: it must be mysql, mariadb or sqlite, as in mysql+pymysql://almanac:PASSWORD@db.example/almanac", scheme)
}

// location is where an SQLite database is.
type location struct {
	path    string // of the file; empty is in memory
	options url.Values
}

const inMemory = ":memory:"

// String implements target.
func (p location) String() string {
	if p.path == "" {
		return "in memory"
	}
	return p.path
}

func parseSQLite(rest string) (target, error) {
	path, noServer := strings.CutPrefix(rest, "/")
	switch {
	case rest == "":
		return location{}, nil
	case !noServer:
		return nil, fault.Field("connection", "a sqlite URL names no server: write sqlite:/// before a relative path and sqlite://// before an absolute one")
	case strings.Contains(path, "?"):
		return nil, fault.Field("connection", "a sqlite URL has no options; write file:PATH?OPTIONS")
	}
	return placeOf(path, nil), nil
}

// parseFileName reads SQLite's own form of a URL, https://www.sqlite.org/uri.html.
func parseFileName(connection string) (target, error) {
	u, err := url.Parse(connection)
	if err != nil {
		return nil, fault.Field("connection", "is not a URL in the form file:PATH?OPTIONS")
	}
	if u.Host != "" && u.Host != "localhost" {
		return nil, fault.Field("connection", "a file has no server: write file:PATH")
	}
	path := u.Path
	if u.Opaque != "" {
		if path, err = url.PathUnescape(u.Opaque); err != nil {
			return nil, fault.Field("connection", "the path has a broken escape; write %%25 for a percent sign")
		}
	}
	if u.Query().Get("mode") == "memory" {
		return location{}, nil
	}
	return placeOf(path, u.Query()), nil
}

func placeOf(path string, options url.Values) location {
	if path == "" || path == inMemory {
		return location{}
	}
	return location{path: filepath.Clean(path), options: options}
}

// dsn returns the data source name for the driver, with these options set.
func (p location) dsn(set map[string]string) string {
	options := url.Values{}
	maps.Copy(options, p.options)
	for name, value := range set {
		options.Set(name, value)
	}
	path := inMemory
	if p.path != "" {
		path = (&url.URL{Path: p.path}).EscapedPath()
	}
	return "file:" + path + "?" + options.Encode()
}

// sqlLog writes gorm's log to slog. It omits errors, because the caller receives them and decides
// which of them matter.
type sqlLog struct{ log *slog.Logger }

func (l sqlLog) LogMode(logger.LogLevel) logger.Interface { return l }

func (l sqlLog) Info(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, fmt.Sprintf(format, args...))
}

func (l sqlLog) Warn(ctx context.Context, format string, args ...any) {
	l.log.WarnContext(ctx, fmt.Sprintf(format, args...))
}

func (l sqlLog) Error(ctx context.Context, format string, args ...any) {
	l.log.WarnContext(ctx, fmt.Sprintf(format, args...))
}

func (l sqlLog) Trace(ctx context.Context, begun time.Time, statement func() (sql string, rows int64), err error) {
	logged, recorded := l.log.Enabled(ctx, slog.LevelDebug), tracing.Recorded(ctx)
	if !logged && !recorded {
		return
	}
	text, rows := statement()
	if logged {
		l.log.DebugContext(ctx, "statement", "sql", text, "rows", rows, "error", err)
	}
	if recorded {
		verb, _, _ := strings.Cut(strings.TrimSpace(text), " ")
		tracing.Done(ctx, "statement "+verb, begun, err, slog.String("db.query.text", text), slog.Int64("rows", rows))
	}
}

// ParamsFilter keeps the values of a statement out of the log.
func (l sqlLog) ParamsFilter(_ context.Context, sql string, _ ...any) (string, []any) {
	return sql, nil
}
