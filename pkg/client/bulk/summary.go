// SPDX-License-Identifier: Apache-2.0

package bulk

import (
	"cmp"
	"encoding/csv"
	"io"
	"strconv"
	"time"
)

// Summary counts the rows of an import by their answers.
type Summary struct {
	Rows           int            `json:"rows"`
	NotSent        map[string]int `json:"not_sent"` // by reason
	Accepted       int            `json:"accepted"`
	Refused        map[string]int `json:"refused"` // by constraint
	Failed         int            `json:"failed"`
	ShiftSeconds   int64          `json:"shift_seconds"`
	SyntheticSizes bool           `json:"synthetic_sizes"`
	DryRun         bool           `json:"dry_run"`
	Seconds        float64        `json:"seconds"`
	RowsPerSecond  float64        `json:"rows_per_second"` // answered rows
}

// Summary counts the rows after Send, which took so long.
func (s *Import) Summary(took time.Duration) Summary {
	sum := Summary{
		Rows: len(s.File.rows), NotSent: make(map[string]int), Refused: make(map[string]int),
		ShiftSeconds: s.Shift, SyntheticSizes: s.File.Synthetic, DryRun: s.DryRun,
		Seconds: took.Round(time.Millisecond).Seconds(),
	}
	answered := 0
	for i, a := range s.answers {
		switch a.verdict {
		case accepted:
			sum.Accepted++
			answered++
		case refused:
			sum.Refused[a.constraint]++
			answered++
		case failed:
			sum.Failed++
		default:
			sum.NotSent[cmp.Or(s.File.rows[i].problem, importStopped)]++
		}
	}
	if took > 0 {
		sum.RowsPerSecond = float64(int64(float64(answered)/took.Seconds()*10)) / 10
	}
	return sum
}

// WriteReport writes the answer to each row as CSV.
func (s *Import) WriteReport(out io.Writer) error {
	records := [][]string{{"line", "id", "start", "end", "quantity", "answer", "constraint", "message"}}
	for i, a := range s.answers {
		r := s.File.rows[i]
		record := []string{strconv.FormatInt(r.Line, 10), r.ID, "", "", "", string(a.verdict), a.constraint, a.message}
		if a.verdict == unsent {
			record[7] = cmp.Or(r.problem, importStopped)
		} else {
			request := s.request(r)
			record[2], record[3], record[4] = request.StartTime.UTC().Format(time.RFC3339), request.EndTime.UTC().Format(time.RFC3339), strconv.Itoa(r.Size)
		}
		records = append(records, record)
	}
	return csv.NewWriter(out).WriteAll(records)
}
