// Package store keeps reservations, idempotency keys and the operator's settings
// in a SQL database: SQLite, through gorm and without cgo.
//
// What the database does differently from another stands in sqlite.go: where it
// is, how connections are opened, and what its errors mean. Everything else is
// plain gorm, and storetest says what any database must do.
//
// A write is one short transaction that holds the write lock from its first
// statement on (_txlock=immediate): a transaction that reads first and asks for
// the lock later fails in SQLite when another has written in between, however
// long it may wait. Nothing but statements happens inside. A read of several
// tables is one transaction too, so that a reservation comes with the claims and
// events that belong to it.
//
// SQLite has one writer at a time, so there is one connection that writes, with a
// queue before it, and a few beside it that only read: in WAL mode they neither
// wait for the writer nor hold it up. A database in memory lives in its one
// connection, which then does both.
//
// Nothing is kept in the Store between calls. A failure is told as an
// Unavailable fault, and the next call finds the database as it then is.
package store
