package nodedocs

import (
	"fmt"
	"strings"
)

// difference is something that a run of n8n 2.41.1 was recorded to do otherwise.
type difference struct{ what, n8n, here string }

// differences are all that remain of 81 recorded runs of nodes and 559 recorded expressions.
var differences = []difference{
	{
		"On Error: continue, in the node that runs last", "the node goes on, and the execution still counts as failed with its error",
		"the execution succeeds, and an item holds the error (seen with Code and Sort)",
	},
	{
		"Compare Datasets with a mix of inputs", "changes the items of the node before it, which others that read them then see changed",
		"changes its own output only",
	},
	{
		"HTTP Request, files", "the content is never in the item", "small files stay in their item, unless the workers are told otherwise",
	},
	{
		"HTTP Request, full response", "all headers in the order of arrival, among them connection",
		"in the order of their names, without those that are for the connection alone",
	},
	{"`$node[…].parameter`", "with defaults that the editor filled in", "with what the workflow says"},
	{"`$getPairedItem`", "an error that quotes the sandbox", "undefined"},
}

// dates are what JavaScript, Luxon and Intl do otherwise than in Node.js 20, of 272 compared outputs
// and what is known to be missing.
var dates = []string{
	"some forty locales are complete (see pkg/javascript/assets); in others, texts are American",
	"no Temporal, Intl.Segmenter, Intl.DisplayNames, Intl.DurationFormat and Intl.supportedValuesOf; calendars and digits other than ours",
	"localeCompare and Intl.Collator compare without the rules of a language, and do not know the options numeric",
	"toLocaleUpperCase and toLocaleLowerCase are those of English",
}

func writeDifferences(b *strings.Builder) {
	b.WriteString(`
## Differences

Where recorded runs of n8n 2.41.1 (81 of nodes, 559 expressions) come out otherwise here, and why that stays so:

| Where | n8n | Here |
|---|---|---|
`)
	for _, d := range differences {
		fmt.Fprintf(b, "| %s | %s | %s |\n", d.what, d.n8n, d.here)
	}
	b.WriteString("\nDates and languages, against Node.js 20:\n\n")
	for _, text := range dates {
		fmt.Fprintf(b, "- %s\n", text)
	}
}
