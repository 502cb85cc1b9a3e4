// SPDX-License-Identifier: Apache-2.0

// Package store keeps reservations, idempotency keys, the operator's settings, the leases of
// periodic work and the log of changes in a SQL database, through gorm: MariaDB or MySQL,
// alone or as a Galera cluster, for any number of processes, and SQLite, without cgo, for
// one.
//
// The differences between databases are in sqlite.go and mysql.go: how connections are
// opened, and what errors mean. Everything else is the same for all. Package storetest has
// the tests that every database must pass.
//
// # Documents
//
// Types that are stored whole have their JSON form on themselves, such as energy.Record.
// Columns beside them serve searches.
//
// # Writing
//
// A write is one short transaction of statements alone. The statement that changes something
// compares what the decision was based on: the versions of the hosts, the version of the
// reservation, and what its project holds. Where one has changed, the commit fails with
// reservation.ErrStale. SELECT … FOR UPDATE and GET_LOCK do not reach the other nodes of a
// Galera cluster and are not used.
//
// A server may fail a correct transaction: it was the victim of a deadlock, another node was
// faster, the node is being restarted. The store repeats such a transaction as a whole until
// Options.Patience is over. When the connection is lost during COMMIT, the outcome is
// unknown. Each commit therefore puts a token of its own into the log of changes, and the
// store looks for the token before it repeats the commit.
//
// SQLite has one writer at a time, so there is one connection that writes, with a queue
// before it, and a few beside it that only read: in WAL mode they neither wait for the
// writer nor delay it. Its transactions hold the write lock from their first statement on
// (_txlock=immediate): one that reads first and requests the lock later fails when another
// has written in between, however long it may wait. A database in memory lives in its one
// connection, which then does both.
//
// # Reading
//
// A read of several tables is one transaction that sees one state, so that a reservation
// comes with the claims and events that belong to it. On Galera a reader waits until its
// node has what the others have committed.
//
// The Store keeps nothing between calls. A failure is an Unavailable fault, and the next
// call finds the database in its state at that time.
package store
