package http

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strings"

	"github.com/reprise-engine/reprise/pkg/credential"
)

// certificateCredential is the type of the credential with a client certificate.
const certificateCredential = "httpSslAuth" //nolint:gosec // the name of a type

// certificate is what a client shows to a server that asks who it is, and whom it trusts instead of the
// authorities that the machine knows.
type certificate struct {
	own         *tls.Certificate
	authorities *x509.CertPool
	// digest tells certificates apart without keeping them.
	digest string
}

// certificate reads the credential of type httpSslAuth: {ca, cert, key, passphrase}, all PEM or empty.
func (p *parameters) certificate() *certificate {
	if p.err != nil {
		return nil
	}
	fail := func(message string) *certificate {
		p.err = operationError(message)
		return nil
	}
	ref, ok := p.call.Node.Credentials[certificateCredential]
	switch {
	case !ok:
		return fail(`Node does not have any credentials set for "` + certificateCredential + `"`)
	case p.call.Credentials == nil:
		return fail("credentials are not available here")
	}
	values, err := p.call.Credentials(p.ctx, certificateCredential, ref)
	if err != nil {
		p.err = err
		return nil
	}
	data := credential.Data(values)
	read := func(name string) string { return lines(data.Text(name)) }
	ca, cert, key, passphrase := read("ca"), read("cert"), read("key"), data.Text("passphrase")
	digest := sha256.Sum256([]byte(strings.Join([]string{ca, cert, key, passphrase}, "\x00")))
	c := &certificate{digest: hex.EncodeToString(digest[:])}
	if ca != "" {
		if c.authorities = x509.NewCertPool(); !c.authorities.AppendCertsFromPEM([]byte(ca)) {
			return fail("The CA of the SSL credential is no certificate in PEM form")
		}
	}
	if cert == "" && key == "" {
		return c
	}
	plain, problem := decrypted([]byte(key), passphrase)
	if problem != "" {
		return fail(problem)
	}
	own, err := tls.X509KeyPair([]byte(cert), plain)
	if err != nil { // which may quote what it was given
		return fail("The certificate and the private key of the SSL credential are not a pair in PEM form")
	}
	c.own = &own
	return c
}

// decrypted is a private key in PEM form without its passphrase.
func decrypted(key []byte, passphrase string) (plain []byte, problem string) {
	block, _ := pem.Decode(key)
	switch {
	case block == nil:
		return key, ""
	case block.Type == "ENCRYPTED PRIVATE KEY":
		return nil, "The private key of the SSL credential is encrypted as PKCS #8, which is not supported; decrypt it with: openssl pkey -in key.pem -out plain.pem"
	case !x509.IsEncryptedPEMBlock(block): //nolint:staticcheck // old keys are what people have
		return key, ""
	}
	der, err := x509.DecryptPEMBlock(block, []byte(passphrase)) //nolint:staticcheck // see above
	if err != nil {
		return nil, "The passphrase of the SSL credential does not open its private key"
	}
	return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: der}), ""
}

// lines repairs a PEM text whose line breaks a form of one line made spaces.
func lines(text string) string {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "\n") || !strings.HasPrefix(text, "-----BEGIN ") {
		return text
	}
	var b strings.Builder
	for i, piece := range strings.Split(text, "-----") {
		if i%2 == 1 { // BEGIN … and END …
			b.WriteString("-----" + piece + "-----\n")
			continue
		}
		for word := range strings.FieldsSeq(piece) {
			b.WriteString(word + "\n")
		}
	}
	return b.String()
}

// present puts the certificate into the settings of a connection.
func (c *certificate) present(config *tls.Config) {
	if c == nil {
		return
	}
	if c.authorities != nil {
		config.RootCAs = c.authorities
	}
	if c.own != nil {
		config.Certificates = []tls.Certificate{*c.own}
	}
}
