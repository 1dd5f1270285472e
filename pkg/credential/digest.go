package credential

import (
	"crypto/md5" //nolint:gosec // RFC 7616 keeps it for servers that have nothing else
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strings"
)

// Digest answers challenges of HTTP's digest authentication (RFC 7616): MD5, SHA-256 and their -sess
// forms, with qop "auth" or, for old servers, none.
type Digest struct{ User, Password string }

// ErrNoChallenge is returned by Answer when a response asks for no digest that is known.
var ErrNoChallenge = errors.New("credential: the server asks for no digest authentication that is known here")

var digests = map[string]func() hash.Hash{"": md5.New, "MD5": md5.New, "SHA-256": sha256.New}

// Answer is the Authorization header that answers the challenges in a response of status 401.
// uri is the path and query of the request.
func (d *Digest) Answer(header http.Header, method, uri string) (string, error) {
	for _, challenge := range header.Values("WWW-Authenticate") {
		scheme, rest, _ := strings.Cut(strings.TrimSpace(challenge), " ")
		if !strings.EqualFold(scheme, "Digest") {
			continue
		}
		if answer, ok := d.answer(directives(rest), method, uri); ok {
			return answer, nil
		}
	}
	return "", ErrNoChallenge
}

func (d *Digest) answer(c map[string]string, method, uri string) (string, bool) {
	algorithm := strings.ToUpper(c["algorithm"])
	base, session := strings.CutSuffix(algorithm, "-SESS")
	newHash, known := digests[base]
	if !known || c["nonce"] == "" {
		return "", false
	}
	sum := func(parts ...string) string {
		h := newHash()
		_, _ = h.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(h.Sum(nil))
	}
	qop := ""
	for _, offered := range strings.Split(c["qop"], ",") {
		if strings.EqualFold(strings.TrimSpace(offered), "auth") {
			qop = "auth"
		}
	}
	if qop == "" && c["qop"] != "" {
		return "", false
	}
	var random [8]byte
	_, _ = rand.Read(random[:])
	const count = "00000001"
	nonce, own := c["nonce"], hex.EncodeToString(random[:])
	first := sum(d.User, c["realm"], d.Password)
	if session {
		first = sum(first, nonce, own)
	}
	second := sum(method, uri)
	response := sum(first, nonce, second)
	if qop != "" {
		response = sum(first, nonce, count, own, qop, second)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `Digest username="%s", realm="%s", nonce="%s", uri="%s", response="%s"`, quoted(d.User), quoted(c["realm"]), quoted(nonce), uri, response)
	if algorithm != "" {
		fmt.Fprintf(&b, ", algorithm=%s", c["algorithm"])
	}
	if c["opaque"] != "" {
		fmt.Fprintf(&b, `, opaque="%s"`, quoted(c["opaque"]))
	}
	if qop != "" {
		fmt.Fprintf(&b, `, qop=%s, nc=%s, cnonce="%s"`, qop, count, own)
	} else if session {
		fmt.Fprintf(&b, `, cnonce="%s"`, own)
	}
	return b.String(), true
}

func quoted(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", "", "\n", "").Replace(text)
}

// directives reads name=value, name="value".
func directives(text string) map[string]string {
	found := map[string]string{}
	for {
		name, rest, ok := strings.Cut(text, "=")
		if !ok {
			return found
		}
		name = strings.ToLower(strings.Trim(name, " ,\t"))
		var value strings.Builder
		rest = strings.TrimLeft(rest, " ")
		i := 0
		if strings.HasPrefix(rest, `"`) {
			for i = 1; i < len(rest) && rest[i] != '"'; i++ {
				if rest[i] == '\\' && i+1 < len(rest) {
					i++
				}
				value.WriteByte(rest[i])
			}
			i = min(i+1, len(rest))
		} else {
			for ; i < len(rest) && rest[i] != ','; i++ {
				value.WriteByte(rest[i])
			}
		}
		found[name] = strings.TrimSpace(value.String())
		text = rest[i:]
	}
}
