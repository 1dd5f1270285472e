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
			Parameter: "genericAuthType", Values: []string{"httpDigestAuth", "oAuth1Api", "httpSslAuth"},
			Advice: "use header, bearer, basic, query, custom or OAuth2 credentials",
		},
		{Parameter: "provideSslCertificates", Advice: "put a proxy with the client certificate in front of the server"},
	},
	Note: "predefined credentials: those with a key or token, and OAuth2 with an access token that is still valid (it is not renewed)",
}
