// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/figure"
)

// Table is a table of text cells.
type Table struct {
	Columns []string
	Rows    [][]string
}

// Add adds a row. float64 cells are written with six significant digits.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		switch c := c.(type) {
		case float64:
			row[i] = fmt.Sprintf("%.6g", c)
		default:
			row[i] = fmt.Sprint(c)
		}
	}
	t.Rows = append(t.Rows, row)
}

// CSV returns the table as comma-separated values with a header.
func (t *Table) CSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := errors.Join(w.Write(t.Columns), w.WriteAll(t.Rows)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Report is the report of an experiment: text, tables and figures in Markdown, and all results
// as a table. The same experiment with the same seed produces the same bytes.
type Report struct {
	// Results becomes results.csv.
	Results Table

	text    strings.Builder
	figures []drawing
	files   map[string]Table
}

type drawing struct {
	name   string
	figure figure.Figure
}

// NewReport returns a report with a title.
func NewReport(title string) *Report {
	r := &Report{}
	r.Heading(1, title)
	return r
}

// Heading adds a heading; level 1 is the title's.
func (r *Report) Heading(level int, text string) {
	if r.text.Len() > 0 {
		r.text.WriteString("\n")
	}
	fmt.Fprintf(&r.text, "%s %s\n", strings.Repeat("#", level), text)
}

// Text adds a paragraph.
func (r *Report) Text(format string, args ...any) {
	fmt.Fprintf(&r.text, "\n%s\n", strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// List adds a list.
func (r *Report) List(items ...string) {
	r.text.WriteString("\n")
	for _, item := range items {
		fmt.Fprintf(&r.text, "- %s\n", item)
	}
}

// Table adds a table to the text.
func (r *Report) Table(t Table) {
	r.text.WriteString("\n")
	line := func(cells []string) {
		r.text.WriteString("|")
		for _, c := range cells {
			fmt.Fprintf(&r.text, " %s |", strings.ReplaceAll(c, "|", "\\|"))
		}
		r.text.WriteString("\n")
	}
	line(t.Columns)
	r.text.WriteString("|" + strings.Repeat("---|", len(t.Columns)) + "\n")
	for _, row := range t.Rows {
		line(row)
	}
}

// Figure adds a figure with a caption. name is the name of its files without folder and
// suffix.
func (r *Report) Figure(name, caption string, f figure.Figure) {
	r.figures = append(r.figures, drawing{name, f})
	fmt.Fprintf(&r.text, "\n![%s](%s.svg)\n\n*%s*\n", name, name, caption)
}

// File adds a table that Write writes as a CSV file with the name.
func (r *Report) File(name string, t Table) {
	if r.files == nil {
		r.files = map[string]Table{}
	}
	r.files[name] = t
}

// Markdown returns the text.
func (r *Report) Markdown() string { return r.text.String() }

// Write writes report.md, results.csv, further tables and the figures as SVG and PNG into a
// folder, and creates the folder if needed.
func (r *Report) Write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("create the folder of the report: %w", err)
	}
	contents := map[string][]byte{"report.md": []byte(r.Markdown())}
	tables := map[string]Table{"results.csv": r.Results}
	maps.Copy(tables, r.files)
	for name, t := range tables {
		content, err := t.CSV()
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		contents[name] = content
	}
	for name, content := range contents {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	for _, d := range r.figures {
		if err := d.figure.WriteFiles(filepath.Join(folder, d.name)); err != nil {
			return err
		}
	}
	return nil
}
