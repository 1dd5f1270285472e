package http

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestClientCertificates(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client one"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	text := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	locked, err := x509.EncryptPEMBlock(rand.Reader, "EC PRIVATE KEY", keyDER, []byte("pass"), x509.PEMCipherAES256) //nolint:staticcheck // what people have
	require.NoError(t, err)
	cert, plainKey, lockedKey := text("CERTIFICATE", der), text("EC PRIVATE KEY", keyDER), string(pem.EncodeToMemory(locked))

	var elsewhere string
	server := httptest.NewUnstartedServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if r.URL.Path == "/away" {
			nethttp.Redirect(w, r, elsewhere, nethttp.StatusFound)
			return
		}
		_, _ = w.Write([]byte(r.TLS.PeerCertificates[0].Subject.CommonName))
	}))
	known := x509.NewCertPool()
	require.True(t, known.AppendCertsFromPEM([]byte(cert)))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known}
	server.StartTLS()
	defer server.Close()
	other := httptest.NewTLSServer(nethttp.NotFoundHandler())
	defer other.Close()
	elsewhere = other.URL
	ca := text("CERTIFICATE", server.Certificate().Raw)

	for _, row := range []struct {
		name, path string
		data       map[string]any
		fails      string
	}{
		{"a pair", "/", map[string]any{"ca": ca, "cert": cert, "key": plainKey}, ""},
		{"on one line", "/", map[string]any{"ca": oneLine(ca), "cert": oneLine(cert), "key": oneLine(plainKey)}, ""},
		{"with a passphrase", "/", map[string]any{"ca": ca, "cert": cert, "key": lockedKey, "passphrase": "pass"}, ""},
		{"another passphrase", "/", map[string]any{"ca": ca, "cert": cert, "key": lockedKey, "passphrase": "word"}, "The passphrase of the SSL credential does not open its private key"},
		{"no key", "/", map[string]any{"ca": ca, "cert": cert}, "are not a pair"},
		{"PKCS #8", "/", map[string]any{"ca": ca, "cert": cert, "key": text("ENCRYPTED PRIVATE KEY", keyDER)}, "openssl pkey"},
		{"no certificate", "/", map[string]any{"ca": ca}, "certificate required"},
		{"an authority that is none", "/", map[string]any{"ca": "x", "cert": cert, "key": plainKey}, "The CA of the SSL credential"},
		{"another host", "/away", map[string]any{"ca": ca, "cert": cert, "key": plainKey}, "which would be shown the client certificate"},
	} {
		t.Run(row.name, func(t *testing.T) {
			call := newCall(t, server.URL, `{"url":"BASE`+row.path+`","provideSslCertificates":true}`)
			call.Node.Credentials = map[string]workflow.CredentialRef{certificateCredential: {ID: "1", Name: "c"}}
			call.Credentials = func(context.Context, string, workflow.CredentialRef) (map[string]any, error) { return row.data, nil }
			items, err := execute(t, call)
			if row.fails != "" {
				require.ErrorContains(t, err, row.fails)
				require.NotContains(t, err.Error(), "PRIVATE KEY-")
				return
			}
			require.NoError(t, err)
			require.Equal(t, `[{"data":"client one"}]`, jsons(t, items))
		})
	}
	_, err = execute(t, newCall(t, server.URL, `{"url":"BASE","provideSslCertificates":true}`))
	require.ErrorContains(t, err, "Node does not have any credentials set")
}

// oneLine is what a form with one line makes of a text.
func oneLine(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", " ") }
