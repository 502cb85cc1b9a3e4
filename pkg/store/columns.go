// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	gormschema "gorm.io/gorm/schema"
)

// columns are the columns of a table whose Rows store Values. Adding a column takes one line, the
// field of the row. Its tag `of` is the path of the field of the Value that it stores, without
// the tag the field with the same name; "-" is for a column that the caller converts. The option
// "own" is for texts that few rows have in common.
type columns[Row, Value any] struct {
	names string // for a SELECT
	list  []column
}

type column struct {
	index []int // of the field of the row
	of    []int // of the field of the Value; nil if the caller converts the column
	own   bool
}

// columnsOf returns the columns of a table in the order of the fields of Row. It panics if a field of
// Row refers to no field of Value.
func columnsOf[Row, Value any]() columns[Row, Value] {
	parsed, err := gormschema.Parse(new(Row), &sync.Map{}, gormschema.NamingStrategy{})
	if err != nil {
		panic(fmt.Sprintf("store: %v", err))
	}
	var c columns[Row, Value]
	for _, f := range parsed.Fields {
		if f.DBName == "" {
			continue // the rows of another table
		}
		path, option, _ := strings.Cut(f.StructField.Tag.Get("of"), ",")
		if path == "" {
			path = f.Name
		}
		found := column{index: f.StructField.Index, own: option == "own"}
		if path != "-" {
			found.of = indexOf(reflect.TypeFor[Value](), path)
		}
		c.list = append(c.list, found)
	}
	c.names = strings.Join(parsed.DBNames, ", ")
	return c
}

// indexOf returns the index of the field at a path of names with dots between them.
func indexOf(t reflect.Type, path string) (index []int) {
	for name := range strings.SplitSeq(path, ".") {
		f, ok := t.FieldByName(name)
		if !ok {
			panic(fmt.Sprintf("store: %v has no field %s", t, name))
		}
		index, t = append(index, f.Index...), f.Type
	}
	return index
}

// store copies the fields of a value into its row.
func (c *columns[Row, Value]) store(row *Row, value *Value) {
	to, from := reflect.ValueOf(row).Elem(), reflect.ValueOf(value).Elem()
	for _, column := range c.list {
		if column.of != nil {
			assign(to.FieldByIndex(column.index), from.FieldByIndex(column.of))
		}
	}
}

// load copies the fields of a row into its value.
func (c *columns[Row, Value]) load(value *Value, row *Row) {
	to, from := reflect.ValueOf(value).Elem(), reflect.ValueOf(row).Elem()
	for _, column := range c.list {
		if column.of != nil {
			assign(to.FieldByIndex(column.of), from.FieldByIndex(column.index))
		}
	}
}

// assign copies a text, a truth value or a whole number to a field of the same kind.
func assign(to, from reflect.Value) {
	switch to.Kind() {
	case reflect.String:
		to.SetString(from.String())
	case reflect.Bool:
		to.SetBool(from.Bool())
	default:
		to.SetInt(from.Int())
	}
}

// into returns, for scan, a function that returns pointers to the columns of a row. Equal texts
// are stored once.
func (c *columns[Row, Value]) into(known texts) func(*Row) []any {
	return func(row *Row) []any {
		pointers := make([]any, len(c.list))
		for i, column := range c.list {
			pointers[i] = reflect.ValueOf(row).Elem().FieldByIndex(column.index).Addr().Interface()
			if text, is := pointers[i].(*string); is && !column.own {
				pointers[i] = known.into(text)
			}
		}
		return pointers
	}
}
