package items

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
)

// aggregations are the ways to summarize a field, with the names that their
// results begin with.
var aggregations = map[string]string{
	"append": "appended", "average": "average", "concatenate": "concatenated", "count": "count",
	"countUnique": "unique_count", "max": "max", "min": "min", "sum": "sum",
}

// summarized is a field and what is made of its values.
type summarized struct {
	field, kind string
	empties     bool // null, "" and missing values count
	separator   string
}

func readSummarized(row gjson.Result) (summarized, error) {
	name := row.Get("field")
	if name.Type == gjson.JSON {
		return summarized{}, notAName(0, "field", name)
	}
	f := summarized{field: strings.TrimSpace(name.String()), kind: "count", empties: row.Get("includeEmpty").Bool(), separator: ","}
	if kind := row.Get("aggregation"); kind.Exists() {
		f.kind = kind.String()
	}
	if _, ok := aggregations[f.kind]; !ok {
		return f, node.OperationError(-1, "The aggregation '"+f.kind+"' is unknown",
			"Choose append, average, concatenate, count, countUnique, max, min or sum.")
	}
	if separator := row.Get("separateBy"); separator.Exists() {
		f.separator = separator.String()
	}
	if f.separator == "other" {
		f.separator = row.Get("customSeparator").String()
	}
	return f, nil
}

// of is the result for the values of some items, as JSON.
func (f summarized) of(values []string) string {
	switch f.kind {
	case "append":
		return list(f.counted(values))
	case "concatenate":
		texts := f.counted(values)
		for i, v := range texts {
			texts[i] = text(v)
		}
		return quote(strings.Join(texts, f.separator))
	case "count":
		return strconv.Itoa(len(f.counted(values)))
	case "countUnique":
		seen := map[string]bool{}
		for _, v := range f.counted(values) {
			seen[canonical(v)] = true
		}
		return strconv.Itoa(len(seen))
	case "sum", "average":
		return f.total(values)
	}
	return f.extreme(values)
}

// counted are the values without empty ones, unless these count.
func (f summarized) counted(values []string) []string {
	var kept []string
	for _, v := range values {
		if f.empties || !isNothing(v) && v != `""` {
			kept = append(kept, v)
		}
	}
	return kept
}

// total adds up the numbers; whatever else there is does not count.
func (f summarized) total(values []string) string {
	sum, count := 0.0, 0
	for _, v := range values {
		if number := gjson.Parse(v); number.Type == gjson.Number {
			sum += number.Num
			count++
		}
	}
	if f.kind == "sum" {
		return formatNumber(sum)
	}
	if count == 0 {
		return "null" // there is no average of nothing
	}
	return formatNumber(sum / float64(count))
}

// extreme is the least or the greatest value, null when there is none.
func (f summarized) extreme(values []string) string {
	best := ""
	for _, v := range values {
		if isNothing(v) || v == `""` {
			continue
		}
		if best == "" {
			best = v
			continue
		}
		if left, right := gjson.Parse(v), gjson.Parse(best); f.kind == "min" && less(left, right) || f.kind == "max" && less(right, left) {
			best = v
		}
	}
	if best == "" {
		return "null"
	}
	return best
}
