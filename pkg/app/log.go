package app

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/almanac-cloud/almanac/pkg/config"
)

// Logger gives the log that the configuration asks for: to its file, else to
// fallback. close ends the file.
func Logger(c config.Default, fallback io.Writer) (log *slog.Logger, close func() error, err error) {
	out, close := fallback, func() error { return nil }
	if c.LogFile != "" {
		file, err := os.OpenFile(c.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
		if err != nil {
			return nil, nil, fmt.Errorf("open [DEFAULT] log_file: %w", err)
		}
		out, close = file, file.Close
	}
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if c.Debug {
		options.Level = slog.LevelDebug
	}
	if c.UseJSON {
		return slog.New(slog.NewJSONHandler(out, options)), close, nil
	}
	return slog.New(slog.NewTextHandler(out, options)), close, nil
}
