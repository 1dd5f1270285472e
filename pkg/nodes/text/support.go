package text

import "github.com/reprise-engine/reprise/pkg/node"

// support declares which settings are honoured.
var support = map[string]node.Support{
	base + "html": {
		Options: []string{"trimValues", "cleanUpText", "capitalize", "caption", "customStyling", "tableAttributes", "headerAttributes", "rowAttributes", "cellAttributes"},
	},
	base + "htmlExtract": {Options: []string{"trimValues"}},
	base + "markdown": {
		Options: []string{
			"openLinksInNewWindow", "simplifiedAutoLink", "completeHTMLDocument", "customizedHeaderId", "emoji", "encodeEmails",
			"ghCompatibleHeaderId", "ghMentions", "ghMentionsLink", "tasklists", "headerLevelStart", "requireSpaceBeforeHeadingText", "noHeaderId",
			"parseImgDimensions", "prefixHeaderId", "rawHeaderId", "rawPrefixHeaderId", "simpleLineBreaks", "strikethrough", "tablesHeaderId", "tables",
			"bulletMarker", "codeFence", "emDelimiter", "globalEscape", "ignore", "keepDataImages", "lineStartEscape", "maxConsecutiveNewlines",
			"useLinkReferenceDefinitions", "strongDelimiter", "codeBlockStyle", "textReplace", "blockElements",
		},
		Ignored: map[string]string{
			"backslashEscapesHTMLTags":             "a backslash always escapes",
			"excludeTrailingPunctuationFromURLs":   "it is always left out",
			"ghCodeBlocks":                         "fenced code is always read",
			"literalMidWordUnderscores":            "underscores within words are always literal",
			"literalMidWordAsterisks":              "asterisks within words are read as CommonMark says",
			"smartIndentationFix":                  "indentation is read as it is",
			"disableForced4SpacesIndentedSublists": "lists are indented as CommonMark says",
			"splitAdjacentBlockquotes":             "an empty line always ends a quotation",
			"smoothLivePreview":                    "a setting for editors",
			"omitExtraWLInCodeBlocks":              "code keeps its last line break",
		},
		Note: "Markdown is read as CommonMark",
	},
	base + "xml": {
		Options: []string{"attrkey", "cdata", "charkey", "explicitArray", "explicitRoot", "headless", "ignoreAttrs", "mergeAttrs", "normalize", "normalizeTags", "rootName", "trim"},
		Ignored: map[string]string{"allowSurrogateChars": "every character that XML has can be written"},
	},
}
