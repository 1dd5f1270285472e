// Package labtest is what workflows of tests call: a web server with models and
// pages, a mail server, the credentials that lead to them, and documents of small
// workflows.
//
//	lab := labtest.Start(t)
//	site := lab.Site()                          // every test has its own
//	site.Script(t, `{"m": {"turns": [ … ]}}`)
//	document := site.Agent("m", labtest.HTTPTool("Look_Up", site.URL+"/shout"))
package labtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/internal/mockllm"
)

// maxSites is how many sites a lab has credentials for.
const maxSites = 250

// Lab is a web server. Every site of it is below /<number>, so that requests can
// be told apart.
type Lab struct {
	URL string
	// Credentials is a file in the format of n8n's decrypted export, with one entry
	// for each site that there may be, and SMTPCredential.
	Credentials string

	web   *httptest.Server
	mail  *mailServer
	mu    sync.Mutex
	sites []*Site
}

// Start starts a lab that ends with the test.
func Start(tb testing.TB) *Lab {
	tb.Helper()
	l, err := Open(tb.TempDir())
	require.NoError(tb, err)
	tb.Cleanup(l.Close)
	return l
}

// Open starts a lab that the tests of a process share; dir is for its files.
func Open(dir string) (*Lab, error) {
	l := &Lab{Credentials: filepath.Join(dir, "credentials.json")}
	l.web = httptest.NewServer(l)
	l.URL = l.web.URL
	var err error
	if l.mail, err = startMailServer(); err != nil {
		l.web.Close()
		return nil, err
	}
	credentials := make([]map[string]any, maxSites)
	for n := range credentials {
		credentials[n] = map[string]any{
			"id": credentialID(n), "name": fmt.Sprintf("Model of site %d", n), "type": "openAiApi",
			"data": map[string]any{"apiKey": "sk-secret-of-the-lab", "url": fmt.Sprintf("%s/%d/v1", l.URL, n)},
		}
	}
	credentials = append(credentials, map[string]any{
		"id": SMTPCredential, "name": "Mail of the lab", "type": "smtp", "data": l.mail.credential(),
	})
	data, err := json.Marshal(credentials)
	if err == nil {
		err = os.WriteFile(l.Credentials, data, 0o600)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Close stops the servers; answers under way are cut off.
func (l *Lab) Close() {
	l.mail.close()
	l.web.CloseClientConnections()
	l.web.Close()
}

func credentialID(n int) string { return fmt.Sprintf("model-%d", n) }

// ServeHTTP gives a request to its site.
func (l *Lab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	n, err := strconv.Atoi(number)
	l.mu.Lock()
	var s *Site
	if err == nil && n >= 0 && n < len(l.sites) {
		s = l.sites[n]
	}
	l.mu.Unlock()
	if s == nil {
		http.NotFound(w, r)
		return
	}
	r.URL.Path = "/" + path
	s.pages.ServeHTTP(w, r)
}

// Site is a test's part of the lab.
type Site struct {
	URL string
	// Credential is the id of the openAiApi credential that leads to the site's
	// model.
	Credential string
	// Address is where the site's mail goes.
	Address string

	lab    *Lab
	pages  *http.ServeMux
	model  atomic.Pointer[http.Handler]
	models atomic.Int64
}

// Site opens a site. Its model follows the mock model's built-in rule until
// Script or Model changes it. /shout answers ?text= or the body's "text" in
// upper case, /fail with status 500.
func (l *Lab) Site() *Site {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.sites)
	if n == maxSites {
		panic("labtest: more sites than credentials; raise maxSites")
	}
	s := &Site{URL: fmt.Sprintf("%s/%d", l.URL, n), Credential: credentialID(n), Address: fmt.Sprintf("boss-%d@lab.test", n), lab: l, pages: http.NewServeMux()}
	s.Model(mockllm.New(mockllm.Config{}))
	s.pages.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		s.models.Add(1)
		(*s.model.Load()).ServeHTTP(w, r)
	})
	s.Handle("/shout", shout)
	s.Handle("/fail", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"message":"the mock always fails here"}`, http.StatusInternalServerError)
	})
	l.sites = append(l.sites, s)
	return s
}

// Handle adds a page.
func (s *Site) Handle(path string, page http.HandlerFunc) { s.pages.HandleFunc(path, page) }

// Script makes the site's model play a script of package mockllm.
func (s *Site) Script(tb testing.TB, script string) {
	tb.Helper()
	parsed, err := mockllm.ParseScript([]byte(script))
	require.NoError(tb, err)
	s.Model(mockllm.New(mockllm.Config{Script: parsed}))
}

// Model answers what is sent to the site's model, below /v1.
func (s *Site) Model(h http.Handler) { s.model.Store(&h) }

// Mails are those that were sent to the site's Address, oldest first.
func (s *Site) Mails() []Mail { return s.lab.mail.to(s.Address) }

// OnMail has f called with each mail to the site's Address, before its sender is
// told that it was taken.
func (s *Site) OnMail(f func(Mail)) {
	s.lab.mail.mu.Lock()
	defer s.lab.mail.mu.Unlock()
	s.lab.mail.onGet[s.Address] = f
}

// ModelRequests counts the requests that the site's model got.
func (s *Site) ModelRequests() int64 { return s.models.Load() }

func shout(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("text")
	if text == "" {
		var body struct {
			Text string `json:"text"`
		}
		data, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(data, &body)
		text = body.Text
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"result": "SHOUT " + strings.ToUpper(text)})
}
