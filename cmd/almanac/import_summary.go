package main

import (
	"cmp"
	"encoding/csv"
	"io"
	"strconv"
	"time"
)

// importSummary counts the rows of an import by their answers.
type importSummary struct {
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

func summaryFields(s importSummary) []field {
	return []field{
		{"Rows", s.Rows, inLists}, {"Not Sent", s.NotSent, inLists}, {"Accepted", s.Accepted, inLists}, {"Refused", s.Refused, inLists},
		{"Failed", s.Failed, inLists}, {"Shift Seconds", s.ShiftSeconds, inLists}, {"Synthetic Sizes", s.SyntheticSizes, inLists},
		{"Dry Run", s.DryRun, inLists}, {"Seconds", s.Seconds, inLists}, {"Rows Per Second", s.RowsPerSecond, inLists},
	}
}

func summarize(s *sender, took time.Duration) importSummary {
	sum := importSummary{
		Rows: len(s.load.rows), NotSent: make(map[string]int), Refused: make(map[string]int),
		ShiftSeconds: s.shift, SyntheticSizes: s.load.synthetic, DryRun: s.dryRun,
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
			sum.NotSent[cmp.Or(s.load.rows[i].problem, importStopped)]++
		}
	}
	if took > 0 {
		sum.RowsPerSecond = float64(int64(float64(answered)/took.Seconds()*10)) / 10
	}
	return sum
}

// writeReport writes the answer to each row.
func writeReport(out io.Writer, s *sender) error {
	records := [][]string{{"line", "id", "start", "end", "quantity", "answer", "constraint", "message"}}
	for i, a := range s.answers {
		r := s.load.rows[i]
		record := []string{strconv.FormatInt(r.Line, 10), r.ID, "", "", "", string(a.verdict), a.constraint, a.message}
		if a.verdict == unsent {
			record[7] = cmp.Or(r.problem, importStopped)
		} else {
			request := s.request(r)
			record[2], record[3], record[4] = stamp(*request.StartTime), stamp(*request.EndTime), strconv.Itoa(r.Size)
		}
		records = append(records, record)
	}
	return csv.NewWriter(out).WriteAll(records)
}
