package http

import "github.com/reprise-engine/reprise/pkg/node"

// supported declares which settings both types honour.
var supported = node.Support{
	Options: []string{
		"allowUnauthorizedCerts", "batching", "lowercaseHeaders", "pagination", "proxy", "queryParameterArrays", "redirect", "response", "timeout",
		// Of versions 1 and 2.
		"bodyContentCustomMimeType", "bodyContentType", "followRedirect", "fullResponse", "ignoreResponseCode", "splitIntoItems",
	},
	Ignored: map[string]string{
		"batchSize":     "before version 3 all items are sent at once",
		"batchInterval": "before version 3 all items are sent at once",
	},
	Limits: []node.Limit{
		{
			Parameter: "genericAuthType", Values: []string{"httpSslAuth"},
			Advice: "turn on \"SSL Certificates\" instead, beside another credential if the server wants one",
		},
	},
	Note: "predefined credentials: those with a key, token or password, aws, Google service accounts, and OAuth2, whose tokens are renewed with a refresh token or client credentials; the private key of a client certificate may have a passphrase, but not in PKCS #8 form",
}

// support by type.
var support = map[string]node.Support{
	TypeRequest: supported,
	TypeOldTool: {Options: []string{}, Note: "placeholders, fields and bodies that the model fills in, and an optimized response; what the model writes into a part of the URL is escaped"},
	TypeGraphQL: {Options: []string{}},
	TypeFeed:    {Options: []string{"ignoreSSL", "customFields"}},
	TypePoll:    {Options: []string{}, Note: "the first poll notes what is there; see docs/triggers.md"},
}
