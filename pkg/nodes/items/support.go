package items

import "github.com/reprise-engine/reprise/pkg/node"

// support declares which settings are honoured.
var support = map[string]node.Support{
	base + "splitOut":         {Options: []string{"destinationFieldName", "disableDotNotation", "includeBinary"}},
	base + "aggregate":        {Options: []string{"disableDotNotation", "includeBinaries", "keepMissing", "keepOnlyUnique", "mergeLists"}},
	base + "summarize":        {Options: []string{"continueIfFieldNotFound", "disableDotNotation", "outputFormat", "skipEmptySplitFields"}},
	base + "sort":             {Options: []string{"disableDotNotation"}},
	base + "removeDuplicates": {Options: []string{"disableDotNotation", "historySize", "removeOtherFields", "scope"}},
	base + "renameKeys":       {Options: []string{}, Note: "options of each rule: caseInsensitive, depth"},
	base + "compareDatasets":  {Options: []string{"disableDotNotation", "fuzzyCompare", "multipleMatches", "skipFields"}},
	base + "itemLists": {Options: []string{
		"continueIfFieldNotFound", "destinationFieldName", "disableDotNotation", "includeBinaries", "includeBinary", "keepMissing", "keepOnlyUnique", "mergeLists",
		"outputFormat", "removeOtherFields", "skipEmptySplitFields",
	}},
}
