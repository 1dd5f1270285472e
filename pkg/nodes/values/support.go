package values

import "github.com/reprise-engine/reprise/pkg/node"

// support declares which settings are honoured.
var support = map[string]node.Support{
	base + "dateTime":     dateTimeSupport,
	base + "dateTimeTool": dateTimeSupport,
	base + "crypto":       cryptoSupport,
	base + "cryptoTool":   cryptoSupport,
	base + "jwt": {
		Options:     []string{"algorithm", "clockTolerance", "complete", "ignoreExpiration", "ignoreNotBefore", "kid"},
		Credentials: []string{"jwtAuth"},
	},
	base + "totp": {Options: []string{"algorithm", "digits", "period"}, Credentials: []string{"totpApi"}},
}

var dateTimeSupport = node.Support{
	Options: []string{"fromFormat", "fromTimezone", "includeInputFields", "isoString", "timezone", "toTimezone"},
	Note:    "formats are in English",
}

var cryptoSupport = node.Support{Options: []string{}, Credentials: []string{"crypto"}}
