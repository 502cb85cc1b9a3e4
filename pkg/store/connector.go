// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// connector returns a connector to t whose connections have run the statements of session. Their answers set on.
func (t server) connector(log *slog.Logger, on *writability, session ...string) (driver.Connector, error) {
	several := &inOrder{names: t.addresses(), log: log}
	if len(several.names) > 1 {
		session = slices.Concat(session, []string{probe})
	}
	for _, address := range several.names {
		config := t.config.Clone()
		config.Addr, config.Logger = address, driverLog{log}
		one, err := mysql.NewConnector(config)
		if err != nil {
			return nil, fault.Field("connection", "its options do not fit together: %v", err)
		}
		several.hosts = append(several.hosts, begun{one, session, on})
	}
	if len(several.hosts) == 1 {
		return several.hosts[0], nil
	}
	return several, nil
}

// probe does nothing, except that a Galera node without a majority, which accepts connections, refuses
// it.
const probe = "COMMIT"

// inOrder is a connector that tries the host that answered last, and then all others in order. So
// all connections are to one host until it fails, and a host that is gone delays only the first of
// them.
type inOrder struct {
	hosts []driver.Connector
	names []string
	last  atomic.Int64 // an index
	log   *slog.Logger
}

// Connect implements driver.Connector. If all hosts fail, the error is the answer of a server, if one
// has answered: it tells more than that others did not.
func (c *inOrder) Connect(ctx context.Context) (driver.Conn, error) {
	last := int(c.last.Load())
	conn, err := c.hosts[last].Connect(ctx)
	if err == nil {
		return conn, nil
	}
	worst, all := err, []string{c.names[last] + ": " + err.Error()}
	for at, host := range c.hosts {
		if at == last || ctx.Err() != nil {
			continue
		}
		if conn, err = host.Connect(ctx); err == nil {
			c.last.Store(int64(at))
			c.log.Warn("changed to another host of the database", "from", c.names[last], "to", c.names[at], "error", strings.Join(all, "; "))
			return conn, nil
		}
		all = append(all, c.names[at]+": "+err.Error())
		if number(worst) == 0 {
			worst = err
		}
	}
	return nil, fmt.Errorf("%w (%s)", worst, strings.Join(all, "; "))
}

// Driver implements driver.Connector.
func (c *inOrder) Driver() driver.Driver { return c.hosts[0].Driver() }

// begun is a connector whose connections have run the statements of session.
type begun struct {
	driver.Connector
	session []string
	on      *writability
}

// Connect implements driver.Connector.
func (b begun) Connect(ctx context.Context) (driver.Conn, error) {
	epoch := b.on.epoch.Load()
	conn, err := b.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, statement := range b.session {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, statement, nil); err != nil {
			return nil, errors.Join(fmt.Errorf("begin a session: %w", err), conn.Close())
		}
	}
	return &connection{mysqlConn: conn.(mysqlConn), on: b.on, epoch: epoch}, nil
}

// mysqlConn consists of the interfaces of a connection that database/sql uses.
type mysqlConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// connection is closed after an answer of a Galera node without a majority or of a read-only server, so that
// the next one may be to another host, or if a transaction on it could not be ended: such a node refuses COMMIT and
// ROLLBACK, and the next BEGIN would commit an open transaction, whole or in part.
type connection struct {
	mysqlConn
	useless bool
	on      *writability
	epoch   int64 // of on, when the connection began
}

// ResetSession implements driver.SessionResetter.
func (c *connection) ResetSession(ctx context.Context) error {
	if c.epoch != c.on.epoch.Load() {
		return driver.ErrBadConn
	}
	return c.mysqlConn.ResetSession(ctx)
}

// BeginTx implements driver.ConnBeginTx.
func (c *connection) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.mysqlConn.BeginTx(ctx, o)
	return transaction{tx, c}, c.answered(err)
}

// ExecContext implements driver.ExecerContext.
func (c *connection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.mysqlConn.ExecContext(ctx, query, args)
	if err == nil && changes(query) {
		c.on.accept()
	}
	return result, c.answered(err)
}

// QueryContext implements driver.QueryerContext.
func (c *connection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.mysqlConn.QueryContext(ctx, query, args)
	return rows, c.answered(err)
}

func (c *connection) answered(err error) error {
	if isReadOnly(err) {
		c.on.refuse(err)
		c.useless = true
	}
	if number(err) == noMajority {
		c.useless = true
	}
	return err
}

// IsValid implements driver.Validator.
func (c *connection) IsValid() bool { return !c.useless && c.mysqlConn.IsValid() }

// transaction marks its connection if it could not be ended.
type transaction struct {
	driver.Tx
	on *connection
}

// Commit implements driver.Tx.
func (t transaction) Commit() error { return t.ended(t.Tx.Commit()) }

// Rollback implements driver.Tx.
func (t transaction) Rollback() error { return t.ended(t.Tx.Rollback()) }

func (t transaction) ended(err error) error {
	t.on.useless = t.on.useless || err != nil && !rolledBack(err)
	return t.on.answered(err)
}

// driverLog logs the driver's messages about broken connections; the callers receive them as
// errors.
type driverLog struct{ log *slog.Logger }

func (l driverLog) Print(v ...any) { l.log.Debug("database driver", "message", fmt.Sprint(v...)) }
