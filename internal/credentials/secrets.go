package credentials

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// Secrets are the texts in a credential's data that must not be seen. What is no secret, and is
// needed to understand an error (where a server is, who logs in, the name of a header), is
// left out by the name of its field; of a field with an unknown name everything is taken for secret.
func Secrets(credentialType string, data map[string]any) []string {
	var found []string
	for name, value := range data {
		if credentialType == "httpCustomAuth" && name == "json" {
			found = append(found, customSecrets(value)...)
			continue
		}
		found = append(found, secretsIn(name, value)...)
	}
	return found
}

func secretsIn(name string, value any) []string {
	switch v := value.(type) {
	case string:
		return secretTexts(name, v)
	case float64:
		if !isPublic(name) {
			return []string{strconv.FormatFloat(v, 'f', -1, 64)}
		}
	case map[string]any:
		var found []string
		for inner, value := range v {
			found = append(found, secretsIn(inner, value)...)
		}
		return found
	case []any:
		var found []string
		for _, value := range v {
			found = append(found, secretsIn(name, value)...)
		}
		return found
	}
	return nil
}

// secretTexts are the secrets in one text.
func secretTexts(name, text string) []string {
	if isPublic(name) {
		// A password may be part of an address.
		if !strings.Contains(text, "@") {
			return nil
		}
		if u, err := url.Parse(text); err == nil && u.User != nil {
			if password, ok := u.User.Password(); ok {
				return []string{password}
			}
		}
		return nil
	}
	found := []string{text}
	// "Bearer abc", "Token abc": servers show the second word alone.
	if scheme, rest, ok := strings.Cut(text, " "); ok && len(scheme) <= 10 && rest != "" && !strings.Contains(rest, " ") {
		found = append(found, rest)
	}
	if trimmed := strings.TrimSpace(text); trimmed != text { // headers are sent without spaces around
		found = append(found, trimmed)
	}
	return found
}

// customSecrets are those of {"headers": {}, "qs": {}, "body": {}}, written as JSON.
func customSecrets(value any) []string {
	text, _ := value.(string)
	var found []string
	var walk func(v gjson.Result)
	walk = func(v gjson.Result) {
		switch {
		case v.IsObject() || v.IsArray():
			v.ForEach(func(_, inner gjson.Result) bool {
				walk(inner)
				return true
			})
		case v.Type == gjson.String || v.Type == gjson.Number:
			found = append(found, secretTexts("", v.String())...)
		}
	}
	walk(gjson.Parse(text))
	return found
}

// publicNames are fields of n8n's credential types that hold no secret.
var publicNames = map[string]bool{
	"name": true, "user": true, "username": true, "email": true, "port": true, "scope": true, "region": true, "type": true,
	"granttype": true, "authentication": true, "headername": true, "database": true, "environment": true, "apiversion": true,
	"organizationid": true, "projectid": true, "accountid": true, "workspaceid": true, "tenantid": true, "clientid": true, "deploymentname": true,
	"resourcename": true, "allowedhttprequestdomains": true, "alloweddomains": true, "token_type": true, "tokentype": true, "expires_in": true,
	"authqueryparameters": true, "ssl": true, "service": true, "accesskeyid": true,
}

// publicEndings of fields that say where something is. A webhook's address is a secret.
var publicEndings = []string{"url", "uri", "host", "hostname", "domain", "endpoint", "server"}

func isPublic(name string) bool {
	name = strings.ToLower(name)
	if publicNames[name] {
		return true
	}
	for _, end := range publicEndings {
		if strings.HasSuffix(name, end) {
			return !strings.Contains(name, "webhook")
		}
	}
	return false
}
