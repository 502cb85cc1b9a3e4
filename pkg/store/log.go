package store

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"gorm.io/gorm/logger"
)

// sqlLog writes gorm's log to slog. It does not log errors: the caller receives them, and
// knows which of them matter.
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

func (l sqlLog) Trace(ctx context.Context, _ time.Time, statement func() (sql string, rows int64), err error) {
	if !l.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	text, rows := statement()
	l.log.DebugContext(ctx, "statement", "sql", text, "rows", rows, "error", err)
}

// ParamsFilter keeps the values of a statement out of the log.
func (l sqlLog) ParamsFilter(_ context.Context, sql string, _ ...any) (string, []any) {
	return sql, nil
}
