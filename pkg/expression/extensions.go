package expression

// extensionNames are n8n's extension methods; extensions.js implements them.
var extensionNames = names(
	"abs", "append", "average", "base64Decode", "base64Encode", "beginningOf", "ceil", "chunk", "compact", "diffTo", "diffToNow",
	"difference", "endOfMonth", "extract", "extractDomain", "extractEmail", "extractUrl", "extractUrlPath", "first", "floor", "format",
	"hasField", "hash", "intersection", "isBetween", "isDomain", "isDst", "isEmail", "isEmpty", "isEven", "isInLast", "isInteger",
	"isNotEmpty", "isNumeric", "isOdd", "isUrl", "isWeekend", "keepFieldsContaining", "keys", "last", "length", "max", "merge", "min",
	"minus", "parseJson", "pluck", "plus", "quote", "randomItem", "removeDuplicates", "removeField", "removeFieldsContaining",
	"removeMarkdown", "removeTags", "renameKeys", "replaceSpecialChars", "round", "smartJoin", "sum", "toBoolean", "toCamelCase",
	"toDate", "toDateTime", "toDecimalNumber", "toFloat", "toInt", "toJsonString", "toKebabCase", "toNumber", "toSentenceCase",
	"toSnakeCase", "toTitleCase", "toWholeNumber", "union", "unique", "urlDecode", "urlEncode", "values",
)

func names(list ...string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, name := range list {
		set[name] = true
	}
	return set
}
