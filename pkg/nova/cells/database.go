package cells

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/store"
)

const (
	// answerTime bounds a query; 10,000 hosts need some hundredths of a second.
	answerTime = 10 * time.Second
	// query does not read the columns of cell_mappings that contain passwords of the cells
	// (nova/db/api/models.py CellMapping).
	query = "SELECT h.host, c.uuid FROM host_mappings h JOIN cell_mappings c ON c.id = h.cell_id WHERE NOT c.disabled"
)

// Database is Nova's API database. It is safe for concurrent use.
type Database struct{ pool *sql.DB }

// OpenDatabase returns the database of the connection, as in [api_database] connection in
// Nova's configuration. The user needs to read host and cell_id of host_mappings, and id, uuid
// and disabled of cell_mappings; Almanac never writes. OpenDatabase does not connect yet. It
// returns an Invalid fault for an unusable connection.
func OpenDatabase(connection string, log *slog.Logger) (*Database, error) {
	pool, err := store.OpenForeign(connection, log)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	pool.SetConnMaxIdleTime(time.Minute)
	return &Database{pool}, nil
}

// Close closes the connections.
func (d *Database) Close() error { return d.pool.Close() }

// Cells returns the cell of each host that nova-manage cell_v2 discover_hosts has found, except
// for disabled cells, which get no instances. It returns Unavailable faults.
func (d *Database) Cells(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	all, err := d.read(ctx)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Unavailable, Message: "the cells of the hosts cannot be read from Nova's API database", Err: err}
	}
	return all, nil
}

func (d *Database) read(ctx context.Context) (map[string]string, error) {
	rows, err := d.pool.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var host, cell string
		if err := rows.Scan(&host, &cell); err != nil {
			return nil, err
		}
		all[host] = cell
	}
	return all, rows.Err()
}
