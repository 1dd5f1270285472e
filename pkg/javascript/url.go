package javascript

import (
	"encoding/json"
	"net/url"
	"strings"
)

// defaultPorts are left out of a URL.
var defaultPorts = map[string]string{"http": "80", "https": "443", "ftp": "21", "ws": "80", "wss": "443"}

// parseURL takes [url, base] and answers the fields of JavaScript's URL.
func parseURL(arg string) (string, bool) {
	var list []string
	if json.Unmarshal([]byte(arg), &list) != nil || len(list) != 2 {
		return "", false
	}
	u, err := url.Parse(strings.TrimSpace(list[0]))
	if err != nil {
		return "", false
	}
	if list[1] != "" {
		base, err := url.Parse(strings.TrimSpace(list[1]))
		if err != nil || base.Scheme == "" {
			return "", false
		}
		u = base.ResolveReference(u)
	}
	special := defaultPorts[u.Scheme] != ""
	if u.Scheme == "" || special && u.Hostname() == "" {
		return "", false
	}
	fields := map[string]any{
		"protocol": u.Scheme + ":", "hostname": strings.ToLower(u.Hostname()), "port": u.Port(),
		"pathname": u.EscapedPath(), "search": "", "hash": "", "username": "", "password": "",
		"slashes": u.Host != "" || special || u.Scheme == "file",
	}
	if strings.Contains(u.Hostname(), ":") {
		fields["hostname"] = "[" + u.Hostname() + "]"
	}
	if u.Port() == defaultPorts[u.Scheme] {
		fields["port"] = ""
	}
	if u.Opaque != "" {
		fields["pathname"] = u.Opaque
	} else if special && u.Path == "" {
		fields["pathname"] = "/"
	}
	if u.RawQuery != "" {
		fields["search"] = "?" + u.RawQuery
	}
	if u.Fragment != "" {
		fields["hash"] = "#" + u.EscapedFragment()
	}
	if u.User != nil {
		fields["username"] = u.User.Username()
		fields["password"], _ = u.User.Password()
	}
	raw, err := json.Marshal(fields)
	return string(raw), err == nil
}
