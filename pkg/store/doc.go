// Package store keeps reservations, idempotency keys, the operator's settings, the
// leases of periodic work and the log of changes in a SQL database, through gorm:
// MariaDB or MySQL, alone or as a Galera cluster, for any number of processes, and
// SQLite, without cgo, for one.
//
// What one database does differently from another stands in sqlite.go and in
// mysql.go: how connections are opened, and what errors mean. Everything else is
// the same for all, and storetest says what any database must do.
//
// # Writing
//
// A write is one short transaction in which nothing but statements happens. What a
// decision was made on is compared in the statement that changes it: the versions
// of the hosts, the version of the reservation, and what its project holds. Where
// one is not as it was known, the commit fails with reservation.ErrStale. SELECT …
// FOR UPDATE and GET_LOCK do not reach the other nodes of a Galera cluster and are
// not used.
//
// A server may fail a transaction that was right: it was the victim of a deadlock,
// another node was faster, the node is being restarted. Such a transaction is run
// again, whole, until Options.Patience is over. When the connection is lost during
// COMMIT nobody knows what became of it. Each commit therefore puts a token of its
// own into the log of changes, and before it is run again it is looked for there.
//
// SQLite has one writer at a time, so there is one connection that writes, with a
// queue before it, and a few beside it that only read: in WAL mode they neither
// wait for the writer nor hold it up. Its transactions hold the write lock from
// their first statement on (_txlock=immediate): one that reads first and asks for
// the lock later fails when another has written in between, however long it may
// wait. A database in memory lives in its one connection, which then does both.
//
// # Reading
//
// A read of several tables is one transaction that sees one state, so that a
// reservation comes with the claims and events that belong to it. On Galera a
// reader waits until its node has what the others have committed.
//
// Nothing is kept in the Store between calls. A failure is told as an Unavailable
// fault, and the next call finds the database as it then is.
package store
