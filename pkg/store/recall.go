// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Recall implements booking.Records. With All, the log in the answer is only its last entry, the
// place from which to continue, and the read lasts as long as it takes. If a question for the log
// finds nothing new, Recall makes one statement.
func (s *Store) Recall(ctx context.Context, q booking.Recall) (booking.Recalled, error) {
	got, err := s.recall(ctx, q)
	return got, fault.While(err, "recall reservations")
}

// recall reads what changed since the last reading; without a transaction if nothing did.
func (s *Store) recall(ctx context.Context, q booking.Recall) (got booking.Recalled, err error) {
	if !q.All && len(q.IDs) == 0 && len(q.Hosts) == 0 && q.Project == "" {
		err := s.look(ctx, func(db *gorm.DB) (err error) {
			got.Log, err = readLog(db, q)
			return err
		})
		known := func(e booking.LogEntry) bool { return e.Version <= knownVersion(q, e.ID) }
		if err != nil || !slices.ContainsFunc(got.Log, func(e booking.LogEntry) bool { return !known(e) }) {
			return got, err
		}
	}
	var rows []*reservationRow
	read := s.read
	if q.All {
		read = s.readWhole
	}
	err = read(ctx, func(tx *gorm.DB) (err error) {
		got, rows, err = recall(tx, q)
		return err
	})
	if err != nil {
		return booking.Recalled{}, err
	}
	got.Reservations, err = reservations(rows)
	return got, err
}

func knownVersion(q booking.Recall, id string) int64 {
	if q.Known == nil {
		return 0
	}
	return q.Known(id)
}

// recall reads in tx, which sees one state from its first statement on.
func recall(tx *gorm.DB, q booking.Recall) (got booking.Recalled, rows []*reservationRow, err error) {
	if got.Log, err = readLog(tx, q); err != nil {
		return got, nil, err
	}
	find := &finding{tx: tx, asked: q, unknown: make(map[string]bool), there: make(map[string]bool), owners: make(map[string]bool)}
	if q.All {
		got.Hosts, err = find.all()
	} else {
		got.Hosts, err = find.named(got.Log)
	}
	if err != nil {
		return got, nil, err
	}
	if got.Projects, err = find.projects(); err != nil {
		return got, nil, err
	}
	got.Gone = slices.DeleteFunc(slices.Clone(q.IDs), func(id string) bool { return find.there[id] })
	rows, err = find.rows()
	slices.SortFunc(rows, func(a, b *reservationRow) int {
		return cmp.Or(cmp.Compare(a.StartAt, b.StartAt), cmp.Compare(a.ID, b.ID))
	})
	return got, rows, err
}

// rows returns the rows of the reservations that are unknown to the caller, with their parts, in no
// order.
func (f *finding) rows() (rows []*reservationRow, err error) {
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(f.unknown)), batch) {
		var found []*reservationRow
		if err := f.tx.Where("id IN ?", chunk).Find(&found).Error; err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	if err := loadParts(f.tx, rows); err != nil {
		return nil, err
	}
	return append(rows, f.live...), nil
}

// readLog returns the entries of the log of changes since the last reading; the newest alone for a whole
// reading.
func readLog(tx *gorm.DB, q booking.Recall) ([]booking.LogEntry, error) {
	var rows []changeRow
	found := tx.Select("seq", "reservation_id", "version")
	if q.All {
		found = found.Order("seq DESC").Limit(1)
	} else {
		found = found.Where("seq > ?", q.Since).Order("seq")
	}
	if err := found.Find(&rows).Error; err != nil {
		return nil, err
	}
	var entries []booking.LogEntry
	for _, row := range rows {
		entries = append(entries, booking.LogEntry{Place: row.Seq, ID: row.ReservationID, Version: row.Version})
	}
	return entries, nil
}

// finding collects the reservations for an answer.
type finding struct {
	tx      *gorm.DB
	asked   booking.Recall
	unknown map[string]bool   // to the caller, by id
	there   map[string]bool   // all that were found, known or not
	owners  map[string]bool   // the projects of the unknown ones
	live    []*reservationRow // unknown ones that were read already, with their parts
}

// add adds the reservations of found that the caller does not have in their version.
func (f *finding) add(found *gorm.DB) error {
	projects := make(texts)
	fields := func(row *foundRow) []any { return []any{&row.id, &row.version, projects.into(&row.project)} }
	return scan(found.Table("reservations"), "id, version, project_id", fields, func(row foundRow) {
		f.there[row.id] = true
		if row.version > knownVersion(f.asked, row.id) {
			f.unknown[row.id], f.owners[row.project] = true, true
		}
	})
}

// foundRow is a version of a reservation.
type foundRow struct {
	id      string
	version int64
	project string
}

// all adds all live reservations and the requested ones. It returns the versions of all
// hosts.
func (f *finding) all() ([]booking.HostVersion, error) {
	if err := f.addLive(); err != nil {
		return nil, err
	}
	rest := slices.DeleteFunc(slices.Clone(f.asked.IDs), func(id string) bool { return f.there[id] })
	for chunk := range slices.Chunk(rest, batch) {
		if err := f.add(f.tx.Where("id IN ?", chunk)); err != nil {
			return nil, err
		}
	}
	return hostVersions(f.tx)
}

// addLive adds all live reservations. It reads their rows at once if the caller knows none.
func (f *finding) addLive() (err error) {
	if f.asked.Known != nil {
		return f.add(f.tx.Where("status IN ?", reservation.LiveStatuses))
	}
	if f.live, err = loadLive(f.tx); err != nil {
		return err
	}
	for _, row := range f.live {
		f.there[row.ID] = true
	}
	return nil
}

// named adds the reservations that the question and the log name, and the live ones on the
// requested hosts and on the hosts of these reservations. It returns the versions of these hosts.
func (f *finding) named(log []booking.LogEntry) ([]booking.HostVersion, error) {
	ids, hosts := make(map[string]bool), make(map[string]bool)
	for _, entry := range log {
		if entry.Version > knownVersion(f.asked, entry.ID) {
			ids[entry.ID] = true
		}
	}
	for _, id := range f.asked.IDs {
		ids[id] = true
	}
	for _, host := range f.asked.Hosts {
		hosts[host] = true
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(ids)), batch) {
		if err := f.add(f.tx.Where("id IN ?", chunk)); err != nil {
			return nil, err
		}
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(f.unknown)), batch) {
		var theirs []string
		if err := f.tx.Model(&claimRow{}).Where("reservation_id IN ?", chunk).Distinct().Pluck("host", &theirs).Error; err != nil {
			return nil, err
		}
		for _, host := range theirs {
			hosts[host] = true
		}
	}
	if f.asked.Project != "" {
		if err := f.add(owned(f.tx, f.asked.Project).Where("status IN ?", reservation.LiveStatuses)); err != nil {
			return nil, err
		}
	}
	return f.on(slices.Sorted(maps.Keys(hosts)))
}

// on adds the live reservations on hosts and returns the versions of these hosts.
func (f *finding) on(hosts []string) ([]booking.HostVersion, error) {
	versions := make(map[string]int64, len(hosts))
	for chunk := range slices.Chunk(hosts, batch) {
		claims := f.tx.Model(&claimRow{}).Where("host IN ?", chunk).Select("reservation_id")
		if err := f.add(f.tx.Where("status IN ? AND id IN (?)", reservation.LiveStatuses, claims)); err != nil {
			return nil, err
		}
		found, err := hostVersions(f.tx.Where("host IN ?", chunk))
		if err != nil {
			return nil, err
		}
		for _, h := range found {
			versions[h.Host] = h.Version
		}
	}
	list := make([]booking.HostVersion, len(hosts))
	for i, host := range hosts {
		list[i] = booking.HostVersion{Host: host, Version: versions[host]} // 0 if there is no row
	}
	return list, nil
}

// projects returns the versions of the projects for which the caller has an older version, and adds
// the live reservations of these projects.
func (f *finding) projects() (list []booking.ProjectVersion, err error) {
	if f.asked.Projects == nil {
		return nil, nil
	}
	rows, err := f.usage()
	if err != nil {
		return nil, err
	}
	var raised []string
	for _, row := range rows {
		if row.Version > f.asked.Projects(row.ProjectID) {
			list = append(list, booking.ProjectVersion{Project: row.ProjectID, Version: row.Version})
			raised = append(raised, row.ProjectID)
		}
	}
	if f.asked.All { // all live ones are there
		return list, nil
	}
	for chunk := range slices.Chunk(raised, batch) {
		if err := f.add(ownedByAny(f.tx, chunk).Where("status IN ?", reservation.LiveStatuses)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// usage returns the rows of the answer's projects, sorted by project.
func (f *finding) usage() (rows []usageRow, err error) {
	if f.asked.All {
		err = f.tx.Order("project_id").Find(&rows).Error
		return rows, err
	}
	if f.asked.Project != "" {
		f.owners[f.asked.Project] = true
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(f.owners)), batch) {
		var found []usageRow
		if err := f.tx.Where("project_id IN ?", chunk).Order("project_id").Find(&found).Error; err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

// hostVersions returns the versions of the hosts of found, sorted by name.
func hostVersions(found *gorm.DB) ([]booking.HostVersion, error) {
	var rows []hostRow
	if err := found.Order("host").Find(&rows).Error; err != nil {
		return nil, err
	}
	list := make([]booking.HostVersion, len(rows))
	for i, row := range rows {
		list[i] = booking.HostVersion{Host: row.Host, Version: row.Version}
	}
	return list, nil
}

// reservations returns the reservations of rows.
func reservations(rows []*reservationRow) (list []reservation.Reservation, err error) {
	list = make([]reservation.Reservation, len(rows))
	for i := range rows {
		if list[i], err = rows[i].reservation(); err != nil {
			return nil, err
		}
	}
	return list, nil
}
