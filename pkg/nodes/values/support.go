package values

import "github.com/reprise-engine/reprise/pkg/node"

// support declares which settings are honoured.
var support = map[string]node.Support{
	base + "dateTime": {
		Options: []string{"fromFormat", "fromTimezone", "includeInputFields", "isoString", "timezone", "toTimezone"},
		Note:    "formats are in English",
	},
	base + "crypto": {
		Options: []string{}, Credentials: []string{"crypto"},
		Note: "encrypt and decrypt take encryptionPassphrase, or encryptionPublicKey and encryptionPrivateKey (RSA), of the credential",
	},
	base + "jwt": {
		Options:     []string{"algorithm", "clockTolerance", "complete", "ignoreExpiration", "ignoreNotBefore", "kid"},
		Credentials: []string{"jwtAuth"},
	},
	base + "totp": {Options: []string{"algorithm", "digits", "period"}, Credentials: []string{"totpApi"}},
}
