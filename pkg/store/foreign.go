package store

import (
	"database/sql"
	"log/slog"

	"github.com/go-sql-driver/mysql"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// readOnly begins a session that may change nothing.
const readOnly = "SET SESSION TRANSACTION READ ONLY"

// OpenForeign returns a pool of connections to the database of another service on MariaDB or
// MySQL, in which nothing can be changed. The connection has the form of that service's own
// configuration. OpenForeign does not connect yet. It fails with an Invalid fault, which
// does not repeat a password.
func OpenForeign(connection string, log *slog.Logger) (*sql.DB, error) {
	t, err := parseConnection(connection)
	if err != nil {
		return nil, err
	}
	there, ok := t.(server)
	if !ok {
		return nil, fault.Field("connection", "must be a database on MariaDB or MySQL, as in mysql+pymysql://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	config := there.config.Clone()
	config.MultiStatements, config.AllowAllFiles = false, false
	config.Logger = driverLog{log}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fault.Field("connection", "its options do not fit together: %v", err)
	}
	return sql.OpenDB(begun{connector, []string{readOnly}}), nil
}
