// Package curl reads cURL command lines and makes HTTP Request nodes of them.
//
// What curl does by itself is spelled out in the node: it does not follow redirects, and data
// makes the request a POST of a form. What a node cannot do is told as a note.
package curl

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/shell"
)

// Request is what a command line asks for.
type Request struct {
	Method, URL string
	Headers     []Pair
	Query       []Pair
	Body        Body
	Insecure    bool
	Proxy       string
	Follow      bool
	// MaxRedirects, TimeoutMS and Retries are 0 when they are not given.
	MaxRedirects, TimeoutMS, Retries int
	// Notes say what a person should know.
	Notes []string
}

// Pair is a name and its value, in the order of the command line.
type Pair struct{ Name, Value string }

// Body is what is sent. At most one of Parts and Text is given.
type Body struct {
	Parts []Part // of a multipart form
	Text  string
	Given bool
}

// Part is a field of a form; File is the path of a file in place of its value.
type Part struct{ Name, Value, File string }

// Words takes a command line apart as a shell does. Variables stay as they are written.
func Words(line string) ([]string, error) {
	words, err := shell.Fields(strings.TrimSpace(line), func(name string) string { return "$" + name })
	if err != nil {
		return nil, fmt.Errorf("the command line cannot be read: %w; give one curl command, without pipes", err)
	}
	return words, nil
}

// parser is one command line that is being read.
type parser struct {
	words    []string
	request  Request
	data     []string
	asQuery  bool // -G
	head     bool
	json     bool
	user     string
	hasUser  bool
	readFile func(string) ([]byte, error)
}

// Parse reads the words of a command line, with or without "curl" at the front. Files that it
// names for data are read.
func Parse(words []string) (*Request, error) {
	if len(words) > 0 && strings.TrimSuffix(filepath.Base(words[0]), ".exe") == "curl" {
		words = words[1:]
	}
	p := &parser{words: words, readFile: os.ReadFile}
	if err := p.read(); err != nil {
		return nil, err
	}
	return p.finish()
}

func (p *parser) read() error {
	for onlyURLs := false; len(p.words) > 0; {
		word := p.words[0]
		p.words = p.words[1:]
		var err error
		switch {
		case onlyURLs || !strings.HasPrefix(word, "-") || word == "-":
			err = p.setURL(word)
		case word == "--":
			onlyURLs = true
		case strings.HasPrefix(word, "--"):
			err = p.long(word[2:])
		default:
			err = p.short(word[1:])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) setURL(word string) error {
	if p.request.URL != "" {
		return fmt.Errorf("there are two URLs, %s and %s: give one of them at a time (is something not quoted?)", p.request.URL, word)
	}
	if !strings.Contains(word, "://") {
		word = "http://" + word // as curl guesses
	}
	if _, err := url.Parse(strings.NewReplacer("{", "", "}", "", "$", "").Replace(word)); err != nil {
		return fmt.Errorf("%q is no URL: %w", word, err)
	}
	p.request.URL = word
	return nil
}

// long reads an option such as --request POST or --request=POST.
func (p *parser) long(name string) error {
	name, value, joined := strings.Cut(name, "=")
	o, ok := options[name]
	switch {
	case !ok && strings.HasPrefix(name, "no-"):
		return nil
	case !ok:
		return fmt.Errorf("the option --%s is not known here; leave it out", name)
	case !o.value:
		return o.set(p, "")
	case !joined:
		if len(p.words) == 0 {
			return fmt.Errorf("--%s needs a value", name)
		}
		value, p.words = p.words[0], p.words[1:]
	}
	return o.set(p, value)
}

// short reads options such as -sSL, -X POST or -XPOST.
func (p *parser) short(letters string) error {
	for i, letter := range letters {
		o, ok := options[shortNames[letter]]
		if !ok {
			return fmt.Errorf("the option -%c is not known here; leave it out", letter)
		}
		if !o.value {
			if err := o.set(p, ""); err != nil {
				return err
			}
			continue
		}
		value := letters[i+len(string(letter)):]
		if value == "" {
			if len(p.words) == 0 {
				return fmt.Errorf("-%c needs a value", letter)
			}
			value, p.words = p.words[0], p.words[1:]
		}
		return o.set(p, value)
	}
	return nil
}

func (p *parser) note(format string, args ...any) {
	p.request.Notes = append(p.request.Notes, fmt.Sprintf(format, args...))
}

// finish puts together what options say of each other.
func (p *parser) finish() (*Request, error) {
	r := &p.request
	if r.URL == "" {
		return nil, errors.New("there is no URL in the command line")
	}
	switch {
	case p.asQuery:
		for _, d := range p.data {
			for piece := range strings.SplitSeq(d, "&") {
				name, value, _ := strings.Cut(piece, "=")
				r.Query = append(r.Query, Pair{unescape(name), unescape(value)})
			}
		}
	case len(p.data) > 0 && len(r.Body.Parts) > 0:
		return nil, errors.New("there is data (-d) and a form (-F): curl sends one of them")
	case len(p.data) > 0:
		separator := "&"
		if p.json {
			separator = "" // curl joins several --json as they are
		}
		r.Body.Text, r.Body.Given = strings.Join(p.data, separator), true
	}
	if p.json {
		p.setDefault("Content-Type", "application/json")
		p.setDefault("Accept", "application/json")
	}
	if p.hasUser && r.Header("Authorization") == "" {
		if !strings.Contains(p.user, ":") {
			p.note("-u has no password; curl would ask for it")
		}
		r.Headers = append(r.Headers, Pair{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(p.user))})
	}
	if r.Header("Authorization") != "" {
		p.note("the node holds the secret of its Authorization header: a credential (Basic, Bearer or Header Auth) keeps it out of the file")
	}
	if r.Method == "" {
		switch {
		case p.head:
			r.Method = "HEAD"
		case r.Body.Given || len(r.Body.Parts) > 0:
			r.Method = "POST"
		default:
			r.Method = "GET"
		}
	}
	return r, nil
}

func unescape(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// Header returns the last value of a header, "" without one.
func (r *Request) Header(name string) string {
	value := ""
	for _, h := range r.Headers {
		if strings.EqualFold(h.Name, name) {
			value = h.Value
		}
	}
	return value
}

func (p *parser) setDefault(name, value string) {
	if p.request.Header(name) == "" {
		p.request.Headers = append(p.request.Headers, Pair{name, value})
	}
}

func (p *parser) header(text string) error {
	name, value, ok := strings.Cut(text, ":")
	if !ok {
		if name, empty := strings.CutSuffix(text, ";"); empty {
			p.request.Headers = append(p.request.Headers, Pair{strings.TrimSpace(name), ""})
			return nil
		}
		return fmt.Errorf("the header %q has no colon", text)
	}
	if value = strings.TrimSpace(value); value != "" { // "Name:" leaves out one of curl's own
		p.request.Headers = append(p.request.Headers, Pair{strings.TrimSpace(name), value})
	}
	return nil
}

func seconds(name, value string) (int, error) {
	s, err := strconv.ParseFloat(value, 64)
	if err != nil || s < 0 {
		return 0, fmt.Errorf("--%s %s is no number of seconds", name, value)
	}
	return int(s * 1000), nil
}
