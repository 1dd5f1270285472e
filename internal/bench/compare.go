package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// Parse reads a report that was written as JSON.
func Parse(data []byte) (Result, error) {
	var head struct {
		Scenario string `json:"scenario"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("not a report in JSON: %w; write one with reprise bench --output json", err)
	}
	if head.Scenario == "" {
		return nil, errors.New(`not a report: it has no "scenario"; write one with reprise bench --output json`)
	}
	s, err := scenarioOf(head.Scenario)
	if err != nil {
		return nil, err
	}
	r := s.empty()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields() // a field that was renamed would be a figure that is missing
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("report of scenario %s: %w; it may be of another version of reprise", head.Scenario, err)
	}
	return r, nil
}

// Read reads a report from a file.
func Read(path string) (Result, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	r, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Comparison is two reports of one scenario, figure by figure.
type Comparison struct {
	Scenario string           `json:"scenario"`
	Figures  []ComparedFigure `json:"figures"`
	// Notes say what speaks against comparing them.
	Notes []string `json:"notes,omitempty"`
}

// ComparedFigure is one figure of both reports. A is nil when only B has it, and the other way
// round; Ratio is B by A, nil where there is none.
type ComparedFigure struct {
	Name  string   `json:"name"`
	A     *float64 `json:"a"`
	B     *float64 `json:"b"`
	Ratio *float64 `json:"ratio"`
}

// quiet is how much the machine's speed may differ before a note says so.
const quiet = 0.1

// Compare compares two reports. Only those of the same scenario can be.
func Compare(a, b Result) (*Comparison, error) {
	left, right, err := figures(a)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Scenario: left}
	mine := right
	name, theirs, err := figures(b)
	if err != nil {
		return nil, err
	}
	if name != left {
		return nil, fmt.Errorf("a report of scenario %s cannot be compared with one of %s", left, name)
	}
	for _, f := range mine {
		one := ComparedFigure{Name: f.name, A: &f.value}
		if i := slices.IndexFunc(theirs, func(o figure) bool { return o.name == f.name }); i >= 0 {
			one.B = &theirs[i].value
			if f.value != 0 {
				one.Ratio = known(theirs[i].value/f.value, 3)
			}
		}
		c.Figures = append(c.Figures, one)
	}
	for _, f := range theirs {
		if !slices.ContainsFunc(mine, func(o figure) bool { return o.name == f.name }) {
			c.Figures = append(c.Figures, ComparedFigure{Name: f.name, B: &f.value})
		}
	}
	c.note(a.environment(), b.environment())
	return c, nil
}

func (c *Comparison) note(a, b *Environment) {
	differ := func(what, x, y string) {
		if x != y {
			c.Notes = append(c.Notes, fmt.Sprintf("%s differs: %s and %s", what, orNone(x), orNone(y)))
		}
	}
	differ("the number of CPUs", fmt.Sprint(a.CPUs), fmt.Sprint(b.CPUs))
	differ("the platform", a.Platform, b.Platform)
	differ("Go", a.GoVersion, b.GoVersion)
	differ("Redis", strings.TrimSpace(a.Redis+" "+a.RedisVersion), strings.TrimSpace(b.Redis+" "+b.RedisVersion))
	differ("NATS", a.NATSVersion, b.NATSVersion)
	speed := func(e *Environment) float64 { return (e.SpeedBefore + e.SpeedAfter) / 2 }
	if x, y := speed(a), speed(b); x > 0 && y > 0 && math.Abs(y/x-1) > quiet {
		c.Notes = append(c.Notes, fmt.Sprintf("the machine did %.2f times as much for one thread during the second as during the first: rates and times differ by that alone", y/x))
	}
	for i, e := range []*Environment{a, b} {
		if e.SpeedBefore > 0 && math.Abs(e.SpeedAfter/e.SpeedBefore-1) > quiet {
			c.Notes = append(c.Notes, fmt.Sprintf("the machine's speed changed during the %s report, by a factor of %.2f: measure again",
				[]string{"first", "second"}[i], e.SpeedAfter/e.SpeedBefore))
		}
	}
}

func orNone(s string) string {
	if s == "" {
		return "not known"
	}
	return s
}

type figure struct {
	name  string
	value float64
}

// figures are the numbers of a report, in its order: "p50_ms", or "2 workers: p50_ms" of a row.
func figures(r Result) (scenario string, all []figure, err error) {
	data, err := json.Marshal(r)
	if err != nil {
		return "", nil, fmt.Errorf("encode report: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = walk(d, func(path []string, value any) {
		switch v := value.(type) {
		case json.Number:
			if n, err := v.Float64(); err == nil && !strings.HasPrefix(path[len(path)-1], "machine_") && path[len(path)-1] != "cpus" {
				all = append(all, figure{strings.Join(path, ": "), n})
			}
		case string:
			if len(path) == 1 && path[0] == "scenario" {
				scenario = v
			}
		}
	})
	return scenario, all, err
}

// walk calls visit with each value of a report, in its order. The path to what is in a row begins
// with the row's name, which is its first field.
func walk(d *json.Decoder, visit func(path []string, value any)) error {
	var value func(path []string) error
	object := func(path []string) error {
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return err
			}
			if key == "name" && len(path) > 0 {
				name, err := d.Token()
				if err != nil {
					return err
				}
				path = []string{fmt.Sprint(name)}
				continue
			}
			if err := value(append(slices.Clone(path), fmt.Sprint(key))); err != nil {
				return err
			}
		}
		_, err := d.Token()
		return err
	}
	value = func(path []string) error {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'):
			return object(path)
		case json.Delim('['):
			for i := 0; d.More(); i++ {
				if err := value(append(slices.Clone(path), fmt.Sprint(i+1))); err != nil {
					return err
				}
			}
			_, err := d.Token()
			return err
		}
		visit(path, token)
		return nil
	}
	return value(nil)
}

// noise is what every comparison is told with.
const noise = "Runs of the same program differ by some per cent, p99 and longest by much more. What counts is what\n" +
	"differs the same way in several pairs, measured in turn; CPU and bytes are steadier than rates and times."

// Print writes a comparison for people.
func (c *Comparison) Print(out io.Writer) {
	fmt.Fprintf(out, "scenario %s\n\n", c.Scenario)
	t := Table{Columns: []string{"", "first", "second", "second by first"}}
	for _, f := range c.Figures {
		ratio := ""
		if f.Ratio != nil {
			ratio = fmt.Sprintf("%.2f", *f.Ratio)
		}
		number := func(v *float64) string {
			if v == nil {
				return "-"
			}
			return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", *v), "0"), ".")
		}
		t.add(f.Name, number(f.A), number(f.B), ratio)
	}
	t.print(out)
	fmt.Fprintf(out, "\n%s\n", noise)
	for _, n := range c.Notes {
		fmt.Fprintf(out, "Note: %s.\n", n)
	}
}
