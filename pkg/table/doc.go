// Package table is the data tables of workflows as data: what a table is, what may be asked of it,
// and what a request makes of its rows. It stores nothing and knows no clock.
//
// A Request comes with a key that is the same however often it is sent. Whoever stores tables keeps
// Outcome.Done under that key, together with the changes, and gives it to the next Apply with that
// key: what was done then is answered as it was, and only what was not done is done. So a job that
// runs again, since its worker died or its result was lost, writes nothing twice.
//
// A Data is one version of a table's rows and never changes: Apply makes a new one. So one goroutine
// can search a version while another makes the next.
package table

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// The types of columns.
const (
	String  = "string"
	Number  = "number"
	Boolean = "boolean"
	Date    = "date"
)

// The columns that every table has.
const (
	ColumnID      = "id"
	ColumnCreated = "createdAt"
	ColumnUpdated = "updatedAt"
)

// System reports whether every table has the column, which is then nobody's to write.
func System(column string) bool {
	return column == ColumnID || column == ColumnCreated || column == ColumnUpdated
}

// Column of a table.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Table says what a table is, apart from its rows.
type Table struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Columns []Column `json:"columns"`
	// When it was created and renamed, in ms.
	CreatedAt int64 `json:"createdAt"`
	UpdatedAt int64 `json:"updatedAt"`
}

// Limits of tables; a zero field is its default.
type Limits struct {
	// Rows and Bytes of one table.
	Rows  int
	Bytes int64
}

// What bounds tables besides Limits.
const (
	DefaultRows  = 50_000
	DefaultBytes = 32 << 20
	// MaxTables that there may be.
	MaxTables = 1000
	// MaxOperations of one request.
	MaxOperations = 100_000
	// maxColumns of a table, maxName of the name of one.
	maxColumns = 200
	maxName    = 128
	// maxAnswer bounds the rows of one answer, in bytes.
	maxAnswer = 48 << 20
	// maxDone bounds the rows that are kept to be answered again; of more only the ids are.
	maxDone = 16 << 10
)

// WithDefaults fills in what is not set.
func (l Limits) WithDefaults() Limits {
	if l.Rows <= 0 {
		l.Rows = DefaultRows
	}
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	return l
}

// Kind of an Error.
type Kind string

// The kinds of errors.
const (
	BadRequest Kind = "bad_request"
	NotFound   Kind = "not_found"
	Conflict   Kind = "conflict"
	TooLarge   Kind = "too_large"
)

// Error is a request that cannot be fulfilled. By it nothing was changed.
type Error struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // what a person can do, a sentence
}

func (e *Error) Error() string { return e.Message }

func bad(format string, args ...any) *Error {
	return &Error{Kind: BadRequest, Message: fmt.Sprintf(format, args...)}
}

// Missing is the error of a table that there is not.
func Missing(r Ref) *Error {
	what := fmt.Sprintf("there is no data table %q", r.Name)
	switch {
	case r.Name == "":
		what = fmt.Sprintf("there is no data table with the id %q", r.ID)
	case r.ID != "" && r.ID != r.Name:
		what = fmt.Sprintf("there is no data table with the id %q, and none is named %q", r.ID, r.Name)
	}
	return &Error{Kind: NotFound, Message: what, Hint: "Create it with `reprise tables create NAME --column name:string …` or `reprise tables import`, " +
		"or in a workflow with the Data Table node's operation Create; tables are named by their name, or by an id of these coordinators."}
}

// Taken is the error of a name that another table has.
func Taken(name string) *Error {
	return &Error{Kind: Conflict, Message: fmt.Sprintf("there is a data table %q already", name),
		Hint: "Choose another name, or set Reuse Existing Tables (--if-not-exists)."}
}

// TooMany is the error of one table more than there may be.
func TooMany() *Error {
	return &Error{Kind: TooLarge, Message: fmt.Sprintf("there are %d data tables already, which is the greatest number", MaxTables),
		Hint: "Drop what is not needed: reprise tables list, reprise tables drop."}
}

var columnName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,62}$`)

// CheckName refuses what cannot be a table's name.
func CheckName(name string) *Error {
	if name == "" || len(name) > maxName {
		return bad("the name of a data table must have 1 to %d bytes, not %d", maxName, len(name))
	}
	return nil
}

// CheckColumns refuses what cannot be a table's columns.
func CheckColumns(columns []Column) *Error {
	if len(columns) > maxColumns {
		return bad("a data table has at most %d columns, not %d", maxColumns, len(columns))
	}
	seen := map[string]bool{}
	for _, c := range columns {
		switch {
		case System(c.Name):
			return bad("every data table has the column %q: leave it out", c.Name)
		case !columnName.MatchString(c.Name):
			return bad("column %.100q: a name begins with a letter and has up to 63 letters, digits and _", c.Name)
		case seen[c.Name]:
			return bad("the column %q is there twice", c.Name)
		case !slices.Contains([]string{String, Number, Boolean, Date}, c.Type):
			return bad("column %q has the type %.40q: choose string, number, boolean or date", c.Name, c.Type)
		}
		seen[c.Name] = true
	}
	return nil
}

// Ref names a table by its id or, when none has it, by its name. Files of other installations have ids
// that nothing here has, with the name beside them.
type Ref struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

// What a Request may be about.
const (
	Rows   = "rows"
	Create = "create"
	List   = "list"
	Rename = "rename"
	Drop   = "drop"
)

// Request to the tables.
type Request struct {
	Version int `json:"v"`
	// Key is the same for every repetition of the request, and for no other; requests that
	// change nothing need none.
	Key string `json:"key,omitempty"`
	Do  string `json:"do"`
	// Table that it is about; Create and List have none.
	Table Ref `json:"table"`
	// Operations on its rows, in order, all at once or none.
	Operations []Operation `json:"operations,omitempty"`
	// GoOn: an operation that fails does not keep the next from being done.
	GoOn bool `json:"goOn,omitempty"`
	// Name and Columns of Create; Name is the new one of Rename.
	Name    string   `json:"name,omitempty"`
	Columns []Column `json:"columns,omitempty"`
	// Reuse: Create answers with the table that has the name.
	Reuse bool `json:"reuse,omitempty"`

	// At is the time in ms, by the clock of who fulfils the request.
	At int64 `json:"-"`
}

// Writes reports whether the request may change something.
func (r *Request) Writes() bool {
	return r.Do == Create || r.Do == Rename || r.Do == Drop ||
		slices.ContainsFunc(r.Operations, func(o Operation) bool { return o.writes() })
}

// Check refuses what cannot be fulfilled whatever the tables are.
func (r *Request) Check() error {
	switch r.Do {
	case List:
		return nil
	case Create:
		if err := CheckName(r.Name); err != nil {
			return err
		}
		if err := CheckColumns(r.Columns); err != nil {
			return err
		}
	case Rename:
		if err := CheckName(r.Name); err != nil {
			return err
		}
	case Drop, Rows:
	default:
		return bad("%.40q is nothing that can be done with data tables", r.Do)
	}
	switch {
	case r.Do != Create && r.Table == (Ref{}):
		return bad("no data table is named")
	case len(r.Table.ID) > maxName || len(r.Table.Name) > maxName:
		return bad("the name or id of a data table has at most %d bytes", maxName)
	case len(r.Operations) > MaxOperations:
		return bad("%d operations in one request are more than %d", len(r.Operations), MaxOperations)
	case r.Writes() && (r.Key == "" || len(r.Key) > 512):
		return bad("a request that changes data tables needs a key of 1 to 512 bytes")
	}
	return nil
}

// The operations on rows.
const (
	Insert = "insert"
	Get    = "get"
	Update = "update"
	Upsert = "upsert"
	Delete = "delete"
	Exists = "exists"
)

// Operation on the rows of a table.
type Operation struct {
	Do     string `json:"do"`
	Filter Filter `json:"filter"`
	// Values to write by column, a JSON object. Columns that are not in it are left as they are.
	Values json.RawMessage `json:"values,omitempty"`
	// Order and Limit of Get; 0 is no limit.
	OrderBy    string `json:"orderBy,omitempty"`
	Descending bool   `json:"descending,omitempty"`
	Limit      int    `json:"limit,omitempty"`
	// DryRun changes nothing and answers with the rows before and after.
	DryRun bool `json:"dryRun,omitempty"`
	// Quiet answers without rows.
	Quiet bool `json:"quiet,omitempty"`
}

func (o *Operation) writes() bool { return o.Do != Get && o.Do != Exists && !o.DryRun }

// Filter of rows. Without conditions it has all of them.
type Filter struct {
	Any        bool        `json:"any,omitempty"` // one condition is enough
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition on a row.
type Condition struct {
	Column   string          `json:"column"`
	Operator string          `json:"operator"`
	Value    json.RawMessage `json:"value,omitempty"`
}

// Answer to a Request.
type Answer struct {
	// Table that it was about, and for List all, by name.
	Table  *Table  `json:"table,omitempty"`
	Tables []Table `json:"tables,omitempty"`
	// Results of the operations. They end with the first that failed, unless the request was to go on.
	Results []Result `json:"results,omitempty"`
}

// Result of an Operation.
type Result struct {
	// Rows as JSON objects, and how many rows were found or changed.
	Rows  []json.RawMessage `json:"rows,omitempty"`
	Count int               `json:"count"`
	Error *Error            `json:"error,omitempty"`
}
