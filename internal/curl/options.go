package curl

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// option is an option of curl.
type option struct {
	value bool
	set   func(p *parser, value string) error
}

func nothing(*parser, string) error { return nil }

// silent changes only what curl prints, or what a node does anyway.
var (
	silent      = option{false, nothing}
	silentValue = option{true, nothing}
)

func flagged(set func(*parser)) option {
	return option{false, func(p *parser, _ string) error { set(p); return nil }}
}

func valued(set func(p *parser, value string)) option {
	return option{true, func(p *parser, value string) error { set(p, value); return nil }}
}

// unsupported is left out with a note.
func unsupported(name string, value bool) option {
	return option{value, func(p *parser, _ string) error {
		p.note("--%s is left out: the node has nothing like it", name)
		return nil
	}}
}

var shortNames = map[rune]string{
	'X': "request", 'H': "header", 'd': "data", 'F': "form", 'G': "get", 'I': "head", 'u': "user", 'b': "cookie", 'A': "user-agent",
	'e': "referer", 'k': "insecure", 'x': "proxy", 'L': "location", 'm': "max-time", 'T': "upload-file", 's': "silent", 'S': "show-error",
	'v': "verbose", 'i': "include", 'f': "fail", 'o': "output", 'O': "remote-name", 'g': "globoff", 'N': "no-buffer", 'w': "write-out",
	'c': "cookie-jar", '#': "progress-bar", 'J': "remote-header-name", 'q': "disable", 'E': "cert", 'n': "netrc", 'r': "range",
	'0': "http1.0", '4': "ipv4", '6': "ipv6", 'D': "dump-header",
}

var options map[string]option

func init() { //nolint:gochecknoinits // options refer to parser methods that read the table
	options = map[string]option{
		"request":     valued(func(p *parser, v string) { p.request.Method = strings.ToUpper(v) }),
		"header":      {true, (*parser).header},
		"url":         {true, (*parser).setURL},
		"data":        {true, func(p *parser, v string) error { return p.addData(v, true, true) }},
		"data-ascii":  {true, func(p *parser, v string) error { return p.addData(v, true, true) }},
		"data-binary": {true, func(p *parser, v string) error { return p.addData(v, true, false) }},
		"data-raw":    {true, func(p *parser, v string) error { return p.addData(v, false, false) }},
		"data-urlencode": {true, func(p *parser, v string) error {
			encoded, err := p.urlencode(v)
			p.data = append(p.data, encoded)
			return err
		}},
		"json": {true, func(p *parser, v string) error {
			p.json = true
			return p.addData(v, true, false)
		}},
		"form": {true, (*parser).form},
		"form-string": valued(func(p *parser, v string) {
			name, value, _ := strings.Cut(v, "=")
			p.part(Part{Name: name, Value: value})
		}),
		"get": flagged(func(p *parser) { p.asQuery = true }),
		"url-query": {true, func(p *parser, v string) error {
			if plain, ok := strings.CutPrefix(v, "+"); ok {
				name, value, _ := strings.Cut(plain, "=")
				p.request.Query = append(p.request.Query, Pair{unescape(name), unescape(value)})
				return nil
			}
			encoded, err := p.urlencode(v)
			name, value, found := strings.Cut(encoded, "=")
			if !found {
				name, value = encoded, ""
			}
			p.request.Query = append(p.request.Query, Pair{unescape(name), unescape(value)})
			return err
		}},
		"head":          flagged(func(p *parser) { p.head = true }),
		"user":          valued(func(p *parser, v string) { p.user, p.hasUser = v, true }),
		"basic":         silent,
		"oauth2-bearer": valued(func(p *parser, v string) { p.setDefault("Authorization", "Bearer "+v) }),
		"cookie": valued(func(p *parser, v string) {
			if !strings.Contains(v, "=") {
				p.note("the cookies in the file %s are left out", v)
				return
			}
			p.request.Headers = append(p.request.Headers, Pair{"Cookie", v})
		}),
		"user-agent": valued(func(p *parser, v string) { p.request.Headers = append(p.request.Headers, Pair{"User-Agent", v}) }),
		"referer":    valued(func(p *parser, v string) { p.request.Headers = append(p.request.Headers, Pair{"Referer", v}) }),
		"insecure":   flagged(func(p *parser) { p.request.Insecure = true }),
		"proxy": valued(func(p *parser, v string) {
			if !strings.Contains(v, "://") {
				v = "http://" + v
			}
			p.request.Proxy = v
		}),
		"location":         flagged(func(p *parser) { p.request.Follow = true }),
		"location-trusted": flagged(func(p *parser) { p.request.Follow = true }),
		"max-redirs":       {true, number("max-redirs", func(p *parser, n int) { p.request.MaxRedirects = n })},
		"retry":            {true, number("retry", func(p *parser, n int) { p.request.Retries = n })},
		"max-time": {true, func(p *parser, v string) (err error) {
			p.request.TimeoutMS, err = seconds("max-time", v)
			return err
		}},
		"connect-timeout": {true, func(p *parser, v string) (err error) {
			if p.request.TimeoutMS == 0 {
				p.note("--connect-timeout is left out: the node's timeout is for the whole request")
			}
			_, err = seconds("connect-timeout", v)
			return err
		}},
		"upload-file": valued(func(p *parser, v string) {
			p.note("the file %s is not part of the node: it sends the binary field \"data\" of its input", v)
			p.request.Body.Parts = []Part{{File: v}}
			if p.request.Method == "" {
				p.request.Method = "PUT"
			}
		}),
		"compressed": silent, "silent": silent, "show-error": silent, "verbose": silent, "include": silent, "fail": silent, "fail-with-body": silent,
		"globoff": silent, "no-buffer": silent, "progress-bar": silent, "remote-name": silent, "remote-header-name": silent, "disable": silent,
		"http1.0": silent, "http1.1": silent, "http2": silent, "http2-prior-knowledge": silent, "http3": silent, "ipv4": silent, "ipv6": silent,
		"tlsv1.2": silent, "tlsv1.3": silent, "ssl-no-revoke": silent, "tcp-nodelay": silent, "path-as-is": silent,
		"post301": silent, "post302": silent, "post303": silent, "retry-all-errors": silent, "retry-connrefused": silent,
		"output": silentValue, "write-out": silentValue, "cookie-jar": silentValue, "dump-header": silentValue, "retry-delay": silentValue,
		"retry-max-time": silentValue, "keepalive-time": silentValue, "stderr": silentValue, "trace": silentValue, "trace-ascii": silentValue,
		"cert": unsupported("cert", true), "key": unsupported("key", true), "cacert": unsupported("cacert", true), "resolve": unsupported("resolve", true),
		"connect-to": unsupported("connect-to", true), "interface": unsupported("interface", true), "range": unsupported("range", true),
		"digest": unsupported("digest", false), "ntlm": unsupported("ntlm", false), "netrc": unsupported("netrc", false),
		"proxy-user": unsupported("proxy-user", true), "aws-sigv4": unsupported("aws-sigv4", true), "unix-socket": unsupported("unix-socket", true),
	}
}

func number(name string, set func(*parser, int)) func(*parser, string) error {
	return func(p *parser, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return fmt.Errorf("--%s %s is no number", name, v)
		}
		set(p, n)
		return nil
	}
}

// addData adds data; @file is read when it is allowed, and loses its line ends when it is text.
func (p *parser) addData(v string, files, text bool) error {
	name, isFile := strings.CutPrefix(v, "@")
	if !files || !isFile {
		p.data = append(p.data, v)
		return nil
	}
	content, err := p.readFile(name)
	if err != nil {
		return fmt.Errorf("the data in @%s: %w", name, err)
	}
	v = string(content)
	if text {
		v = strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(v)
	}
	p.data = append(p.data, v)
	return nil
}

// urlencode reads content, =content, name=content, @file and name@file.
func (p *parser) urlencode(v string) (string, error) {
	at := strings.IndexAny(v, "=@")
	if at < 0 {
		return url.QueryEscape(v), nil
	}
	name, value := v[:at], v[at+1:]
	if v[at] == '@' {
		content, err := p.readFile(value)
		if err != nil {
			return "", fmt.Errorf("the data in @%s: %w", value, err)
		}
		value = string(content)
	}
	if name != "" {
		name += "="
	}
	return name + url.QueryEscape(value), nil
}

// form adds a field: name=value, name=@file or name=<file, each with ;type= and the like.
func (p *parser) form(v string) error {
	name, value, ok := strings.Cut(v, "=")
	if !ok {
		return fmt.Errorf("-F %q: want name=value or name=@file", v)
	}
	bare := value
	if at := strings.Index(value, ";"); at >= 0 && (strings.Contains(value[at:], "type=") || strings.Contains(value[at:], "filename=")) {
		bare = value[:at]
	}
	switch {
	case strings.HasPrefix(bare, "@"):
		file := strings.Trim(bare[1:], `"`)
		p.note("the file %s is not part of the node: its field %q sends the binary field %q of the input", file, name, name)
		p.part(Part{Name: name, File: file})
	case strings.HasPrefix(bare, "<"):
		content, err := p.readFile(bare[1:])
		if err != nil {
			return fmt.Errorf("the data in <%s: %w", bare[1:], err)
		}
		p.part(Part{Name: name, Value: string(content)})
	default:
		p.part(Part{Name: name, Value: bare})
	}
	return nil
}

func (p *parser) part(part Part) { p.request.Body.Parts = append(p.request.Body.Parts, part) }
