package http

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// hostile is a server that means harm.
func hostile(t *testing.T) *httptest.Server {
	t.Helper()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 64 {
		_, err := z.Write(zeros)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	require.Less(t, bomb.Len(), 1<<20)
	mux := nethttp.NewServeMux()
	mux.HandleFunc("/endless", func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		for {
			if _, err := w.Write(zeros[:64<<10]); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/bomb", func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	mux.HandleFunc("/promise", func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.Header().Set("Content-Length", "1000000000000")
		w.WriteHeader(nethttp.StatusOK)
	})
	mux.HandleFunc("/trickle", func(w nethttp.ResponseWriter, r *nethttp.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte("."))
			_ = nethttp.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	mux.HandleFunc("/headers", func(w nethttp.ResponseWriter, r *nethttp.Request) { w.Header().Set("X", strings.Repeat("x", 12<<20)) })
	mux.HandleFunc("/turn/{n}", func(w nethttp.ResponseWriter, r *nethttp.Request) {
		nethttp.Redirect(w, r, "/turn/"+r.PathValue("n")+"0", nethttp.StatusFound)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// allocated is how many bytes a function takes from the heap, given back or not: more
// than it ever held.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

func TestAnswersWithoutEndTakeBoundedMemory(t *testing.T) {
	const limit = 4 << 20
	server := hostile(t)
	for _, c := range []struct {
		path   string
		items  int
		memory int64
	}{
		{"/endless", 1, 6 * limit},
		{"/endless", 40, 6 * limit}, // forty times the limit would be 160 MiB
		{"/bomb", 1, 6 * limit},
		{"/bomb", 40, 6*limit + 40<<16}, // each has a window of the decompressor
		{"/promise", 1, limit},
	} {
		t.Run(fmt.Sprintf("%s by %d", c.path, c.items), func(t *testing.T) {
			input := make([]string, c.items)
			for i := range input {
				input[i] = `{}`
			}
			call := newCall(t, server.URL, `{"url":"BASE`+c.path+`"}`, input...)
			var err error
			used := allocated(func() { _, err = Config{MaxResponseBytes: limit}.Types()[0].Execute(t.Context(), call) })
			ne := nodeError(t, err)
			require.Equal(t, engine.ReasonTooLarge, ne.Reason)
			require.Contains(t, ne.Message, "larger than 4.19 MB")
			require.Contains(t, ne.Message, "REPRISE_MAX_RESPONSE_BYTES")
			require.Less(t, used, c.memory)
		})
	}
}

func TestAnswersThatTakeForEver(t *testing.T) {
	server := hostile(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	slow := make(chan struct{})
	go func() { // one byte of a header now and then
		defer close(slow)
		c, err := silent.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for {
			if _, err := c.Write([]byte("H")); err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond) // the pace of a slow server
		}
	}()
	t.Cleanup(func() { <-slow })
	for name, target := range map[string]string{"body": server.URL + "/trickle", "headers": "http://" + silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			_, err := execute(t, newCall(t, target, `{"url":"BASE","options":{"timeout":300}}`))
			require.Error(t, err)
			require.Less(t, time.Since(begin), 10*time.Second)
			if name == "body" {
				require.Equal(t, engine.ReasonTimeout, nodeError(t, err).Reason)
			}
		})
	}
}

func TestHeadersWithoutEnd(t *testing.T) {
	_, err := execute(t, newCall(t, hostile(t).URL, `{"url":"BASE/headers"}`))
	require.Contains(t, nodeError(t, err).Message, "exceeded")
}

func TestRedirectsWithoutEnd(t *testing.T) {
	_, err := execute(t, newCall(t, hostile(t).URL, `{"url":"BASE/turn/1"}`))
	require.Equal(t, "Maximum number of redirects exceeded", nodeError(t, err).Message)
}

// refusing is a transport with the rules of a worker that may reach nothing here.
func refusing(t *testing.T, call *node.Call) {
	t.Helper()
	transport := call.HTTP.Transport.(*nethttp.Transport)
	refuse := func(host string) error {
		return &node.AddressRefusedError{Host: host, Kind: "a loopback address", Hint: "allow it"}
	}
	transport.DialContext = func(_ context.Context, network, address string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: refuse(address)}
	}
	transport.Proxy = func(r *nethttp.Request) (*url.URL, error) {
		if r.URL.Hostname() == "inside.example" {
			return nil, refuse(r.URL.Host)
		}
		return nil, nil
	}
}

func TestAddressesThatAreRefused(t *testing.T) {
	server := service(t)
	host := strings.TrimPrefix(server.URL, "http://")
	for name, c := range map[string]struct{ parameters, host string }{
		"plain":                      {`{"url":"BASE/json"}`, host},
		"certificates are not asked": {`{"url":"BASE/json","options":{"allowUnauthorizedCerts":true}}`, host},
		"a proxy of the workflow":    {`{"url":"http://out.example","options":{"proxy":"BASE"}}`, host},
		"through any proxy":          {`{"url":"http://inside.example","options":{"proxy":"http://out.example:80"}}`, "inside.example"},
	} {
		t.Run(name, func(t *testing.T) {
			call := newCall(t, server.URL, c.parameters)
			refusing(t, call)
			_, err := execute(t, call)
			ne := nodeError(t, err)
			require.Equal(t, "The connection to "+c.host+" was refused: it is a loopback address", ne.Message)
			require.Equal(t, "allow it", ne.Description)
			require.True(t, ne.NotRetryable)
			call.Node.OnError = workflow.OnErrorContinue
			items, err := execute(t, call)
			require.NoError(t, err)
			require.Contains(t, jsons(t, items), `"code":"EACCES"`)
		})
	}
}

// What a credential adds does not reach another server in any part of a request.
func TestRedirectTakesNoPartOfACredentialAlong(t *testing.T) {
	seen := make(chan string, 10)
	other := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- fmt.Sprint(r.URL, r.Header, string(body))
		_, _ = w.Write([]byte("ok"))
	}))
	t.Cleanup(other.Close)
	server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		nethttp.Redirect(w, r, other.URL, nethttp.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	for kind, data := range map[string]map[string]any{
		"httpHeaderAuth": {"name": "X-Key", "value": secret},
		"httpBearerAuth": {"token": secret},
		"httpBasicAuth":  {"user": "ada", "password": secret},
		"httpQueryAuth":  {"name": "key", "value": secret},
	} {
		_, err := execute(t, withCredential(newCall(t, server.URL, generic(kind, "")), kind, data))
		require.NoError(t, err, kind)
		require.NotContains(t, <-seen, "s3cr3t", kind)
	}
	custom := map[string]any{"json": `{"body":{"key":"s3cr3t-in-the-body"}}`}
	call := withCredential(newCall(t, server.URL, generic("httpCustomAuth", `,"method":"POST","sendBody":true,"bodyParameters":{"parameters":[{"name":"a","value":"b"}]}`)), "httpCustomAuth", custom)
	_, err := execute(t, call)
	require.ErrorContains(t, err, "would be sent the credential")
	require.Empty(t, seen)
}

// A chain that leaves encryption behind leaves the credential behind too.
func TestRedirectWithoutEncryption(t *testing.T) {
	for _, c := range []struct {
		from, to string
		kept     bool
	}{
		{"https://a.example/", "http://a.example/x", false},
		{"https://a.example/", "https://a.example/x", true},
		{"http://a.example/", "https://a.example/x", true},
		{"http://a.example/", "http://a.example:81/x", false},
	} {
		r := &request{options: options{follow: true, maxRedirects: 5}, secrets: secrets{headers: map[string]string{"X-Key": secret}}}
		first := httptest.NewRequest("GET", c.from, nil)
		next := httptest.NewRequest("GET", c.to, nil)
		next.Header.Set("X-Key", secret)
		require.NoError(t, r.redirect(next, []*nethttp.Request{first}))
		require.Equal(t, c.kept, next.Header.Get("X-Key") != "", "%s to %s", c.from, c.to)
	}
}

func TestCopiesOfTransportsAreBounded(t *testing.T) {
	base := &nethttp.Transport{}
	for i := range 3 * maxTransports {
		require.NotNil(t, transportFor(base, options{proxy: fmt.Sprintf("http://p%d.example", i)}))
	}
	require.LessOrEqual(t, len(transports.of), maxTransports)
	same := options{proxy: "http://p.example"}
	require.Same(t, transportFor(base, same), transportFor(base, same))
}
