package values

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
)

// pemBlock reads a PEM block as it comes out of text fields: with its line breaks, with
// "\n" for them, or with spaces.
func pemBlock(text string) (*pem.Block, error) {
	text = strings.TrimSpace(strings.ReplaceAll(text, `\n`, "\n"))
	if !strings.Contains(text, "\n") {
		begin, rest, ok := strings.Cut(text, "----- ")
		body, end, ok2 := strings.Cut(rest, " -----END")
		if ok && ok2 {
			text = begin + "-----\n" + strings.ReplaceAll(body, " ", "\n") + "\n-----END" + end
		}
	}
	block, _ := pem.Decode([]byte(text + "\n"))
	if block == nil {
		return nil, errors.New("it is not PEM: it has to begin with a line such as -----BEGIN PRIVATE KEY-----")
	}
	return block, nil
}

// privateKey reads a private key in PEM (PKCS #1, PKCS #8 or SEC 1, not encrypted). Its
// errors tell nothing of the key.
func privateKey(text string) (crypto.PrivateKey, error) {
	block, err := pemBlock(text)
	if err != nil {
		return nil, err
	}
	if strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "" {
		return nil, errors.New("it is encrypted; remove its passphrase")
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	return nil, errors.New("a block " + block.Type + " was found, which holds no private key")
}

// publicKey reads a public key in PEM: the key, a certificate, or the private key it
// belongs to.
func publicKey(text string) (crypto.PublicKey, error) {
	block, err := pemBlock(text)
	if err != nil {
		return nil, err
	}
	if key, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PublicKey(block.Bytes); err == nil {
		return key, nil
	}
	if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
		return certificate.PublicKey, nil
	}
	if key, err := privateKey(text); err == nil {
		if signer, ok := key.(crypto.Signer); ok {
			return signer.Public(), nil
		}
	}
	return nil, errors.New("a block " + block.Type + " was found, which holds no public key")
}
