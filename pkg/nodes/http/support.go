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
			Advice: "use header, bearer, basic, digest, query, custom, OAuth1 or OAuth2 credentials",
		},
		{Parameter: "provideSslCertificates", Advice: "put a proxy with the client certificate in front of the server"},
	},
	Note: "predefined credentials: those with a key, token or password, aws, Google service accounts, and OAuth2, whose tokens are renewed with a refresh token or client credentials",
}

// support by type.
var support = map[string]node.Support{
	TypeRequest: supported, TypeTool: supported,
	TypeGraphQL: {Options: []string{}}, TypeGraphQL + "Tool": {Options: []string{}},
	TypeFeed: {Options: []string{"ignoreSSL", "customFields"}}, TypeFeed + "Tool": {Options: []string{"ignoreSSL", "customFields"}},
}
