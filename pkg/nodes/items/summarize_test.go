package items

import (
	"testing"

	"github.com/reprise-engine/reprise/pkg/nodes/nodestest"
)

func TestSummarize(t *testing.T) {
	items := nodestest.Items(`{"rep":"A","o":{"v":1},"n":3,"t":"x"}`, `{"rep":"B","n":"5","t":""}`, `{"rep":1,"n":null,"t":"y"}`, `{"rep":"1","n":1.5,"t":"x"}`, `{"n":0.1,"t":{"a":1}}`)
	all := `[{"item":0},{"item":1},{"item":2},{"item":3},{"item":4}]`
	of := func(rows, by, options string) string {
		return `{"fieldsToSummarize":{"values":[` + rows + `]},"fieldsToSplitBy":"` + by + `","options":{` + options + `}}`
	}
	try(t, Summarize(), items, []trial{
		{name: "count is the default", parameters: of(`{"field":"t"}`, "", ""), want: one(`{"count_t":4} ` + all)},
		{name: "empty ones count", parameters: of(`{"field":"rep","includeEmpty":true},{"field":"t","aggregation":"countUnique","includeEmpty":true}`, "", ""), want: one(`{"count_rep":5,"unique_count_t":4} ` + all)},
		{name: "numbers as text do not count", parameters: of(`{"field":"n","aggregation":"sum"},{"field":"n","aggregation":"average"}`, "", ""), want: one(`{"average_n":1.5333333333333332,"sum_n":4.6} ` + all),
			hint: "The field 'n' holds numbers as text in 1 items, which do not count for 'sum'. Convert them first."},
		{name: "the least and the greatest", parameters: of(`{"field":"n","aggregation":"min"},{"field":"n","aggregation":"max"},{"field":"o.v","aggregation":"max"}`, "", ""), want: one(`{"max_n":"5","max_o_v":1,"min_n":0.1} ` + all)},
		{name: "texts in one", parameters: of(`{"field":"t","aggregation":"concatenate","separateBy":"\n"}`, "", ""), want: one(`{"concatenated_t":"x\ny\nx\n{\"a\":1}"} ` + all)},
		{name: "with empty ones and a separator", parameters: of(`{"field":"rep","aggregation":"concatenate","includeEmpty":true,"separateBy":"other","customSeparator":"; "}`, "", ""), want: one(`{"concatenated_rep":"A; B; 1; 1; "} ` + all)},
		{name: "a list", parameters: of(`{"field":"o.v","aggregation":"append"},{"field":"n","aggregation":"append","includeEmpty":true}`, "", ""), want: one(`{"appended_n":[3,"5",null,1.5,0.1],"appended_o_v":[1]} ` + all)},
		{name: "groups keep their types apart", parameters: of(`{"field":"t"}`, "rep", ""), want: one(
			`{"count_t":1,"rep":"A"} {"item":0}`, `{"count_t":0,"rep":"B"} {"item":1}`, `{"count_t":1,"rep":1} {"item":2}`, `{"count_t":1,"rep":"1"} {"item":3}`, `{"count_t":1} {"item":4}`)},
		{name: "groups without empty ones", parameters: of(`{"field":"t"}`, "o.v", `"skipEmptySplitFields":true`), want: one(`{"count_t":1,"o_v":1} {"item":0}`)},
		{name: "groups of groups, the first field first", parameters: of(`{"field":"n"}`, "t, rep", `"skipEmptySplitFields":true`), want: one(
			`{"count_n":1,"rep":"A","t":"x"} {"item":0}`, `{"count_n":1,"rep":"1","t":"x"} {"item":3}`, `{"count_n":0,"rep":1,"t":"y"} {"item":2}`)},
		{name: "one item", parameters: of(`{"field":"n"}`, "rep", `"outputFormat":"singleItem"`), want: one(`{"1":{"count_n":1},"A":{"count_n":1},"B":{"count_n":1},"undefined":{"count_n":1}} ` + all)},
		{name: "one item without groups", parameters: of(`{"field":"n"}`, "", `"outputFormat":"singleItem"`), want: one(`{"count_n":4} ` + all)},
		{name: "no dot notation", parameters: of(`{"field":"o.v"}`, "", `"disableDotNotation":true`), want: one(`{"count_o_v":0} ` + all), hint: "The field 'o.v' does not exist in any items"},
		{name: "nothing to average", parameters: of(`{"field":"rep","aggregation":"average"}`, "", ""), want: one(`{"average_rep":1} ` + all), hint: "The field 'rep' holds numbers as text in 1 items, which do not count for 'average'. Convert them first."},
		{name: "version 1: a missing field", version: 1, parameters: of(`{"field":"zzz"}`, "", ""), err: "The field 'zzz' does not exist in any items"},
		{name: "version 1: going on without it", version: 1, parameters: of(`{"field":"zzz"}`, "", `"continueIfFieldNotFound":true`), want: one(`{} ` + all)},
		{name: "no field", parameters: `{}`, err: "You need to add at least one aggregation to 'Fields to Summarize' with non empty 'Field'"},
		{name: "an unknown aggregation", parameters: of(`{"field":"n","aggregation":"median"}`, "", ""), err: "The aggregation 'median' is unknown"},
		{name: "an unknown format", parameters: of(`{"field":"n"}`, "", `"outputFormat":"table"`), err: "The output format 'table' is unknown"},
		{name: "content instead of a name", parameters: of(`{"field":"={{ $json.o }}"}`, "", ""), err: "The parameter 'field' is an object, but it has to name a field"},
	})
}
