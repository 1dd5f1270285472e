package credential

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // the method that OAuth 1 services ask for
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// escape is RFC 3986's percent-encoding, which both signatures want.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// sortedPairs are parameters, escaped and in order.
func sortedPairs(pairs []Pair) string {
	list := make([]Pair, len(pairs))
	for i, p := range pairs {
		list[i] = Pair{escape(p.Name), escape(p.Value)}
	}
	slices.SortFunc(list, func(a, b Pair) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value)) })
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.Name + "=" + p.Value
	}
	return strings.Join(texts, "&")
}

func pairsOf(values url.Values) []Pair {
	var pairs []Pair
	for name, list := range values {
		for _, value := range list {
			pairs = append(pairs, Pair{name, value})
		}
	}
	return pairs
}

// aws signs with AWS Signature Version 4. The region and the service are read from the host's
// name (service.region.amazonaws.com), else the region is the credential's.
func (g *Grant) aws(data Data) error {
	id, secret := data.Text("accessKeyId"), data.Text("secretAccessKey")
	if id == "" || secret == "" {
		return &UnsupportedError{"aws"}
	}
	session := ""
	if data.Text("temporaryCredentials") != "false" {
		session = data.Text("sessionToken")
	}
	g.Sign = func(req *http.Request, body []byte, now time.Time) error {
		service, region := awsService(req.URL.Hostname(), cmp.Or(data.Text("region"), "us-east-1"))
		signAWS(req, body, now.UTC(), id, secret, session, region, service)
		return nil
	}
	return nil
}

func awsService(host, region string) (string, string) {
	name, ok := strings.CutSuffix(host, ".amazonaws.com")
	if !ok {
		return "execute-api", region
	}
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	if len(labels) > 1 && strings.Count(last, "-") >= 2 {
		region = last
		labels = labels[:len(labels)-1]
	}
	return labels[len(labels)-1], region
}

func signAWS(req *http.Request, body []byte, now time.Time, id, secret, session, region, service string) {
	stamp := now.Format("20060102T150405Z")
	sum := sha256.Sum256(body)
	payload := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Date", stamp)
	req.Header.Set("X-Amz-Content-Sha256", payload)
	if session != "" {
		req.Header.Set("X-Amz-Security-Token", session)
	}
	values := map[string]string{"host": cmp.Or(req.Host, req.URL.Host)}
	for name := range req.Header {
		lower := strings.ToLower(name)
		if lower == "content-type" || strings.HasPrefix(lower, "x-amz-") {
			values[lower] = strings.TrimSpace(req.Header.Get(name))
		}
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	var headers strings.Builder
	for _, name := range names {
		headers.WriteString(name + ":" + values[name] + "\n")
	}
	path := cmp.Or(req.URL.EscapedPath(), "/")
	if service != "s3" { // S3 takes the path as it is, all others escape it once more
		parts := strings.Split(path, "/")
		for i := range parts {
			parts[i] = escape(parts[i])
		}
		path = strings.Join(parts, "/")
	}
	signed := strings.Join(names, ";")
	canonical := strings.Join([]string{req.Method, path, sortedPairs(pairsOf(req.URL.Query())), headers.String(), signed, payload}, "\n")
	scope := strings.Join([]string{stamp[:8], region, service, "aws4_request"}, "/")
	hashed := sha256.Sum256([]byte(canonical))
	key := []byte("AWS4" + secret)
	for _, part := range strings.Split(scope, "/") {
		key = mac(sha256.New, key, part)
	}
	signature := mac(sha256.New, key, strings.Join([]string{"AWS4-HMAC-SHA256", stamp, scope, hex.EncodeToString(hashed[:])}, "\n"))
	req.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%x", id, scope, signed, signature))
}

func mac(newHash func() hash.Hash, key []byte, text string) []byte {
	h := hmac.New(newHash, key)
	_, _ = h.Write([]byte(text))
	return h.Sum(nil)
}

var oauth1Methods = map[string]func() hash.Hash{"HMAC-SHA1": sha1.New, "HMAC-SHA256": sha256.New, "HMAC-SHA512": sha512.New}

// oauth1 signs with OAuth 1.0a (RFC 5849).
func (g *Grant) oauth1(kind string, data Data) error {
	tokens, _ := data["oauthTokenData"].(map[string]any)
	consumer, consumerSecret := data.Text("consumerKey"), data.Text("consumerSecret")
	token, tokenSecret := Data(tokens).Text("oauth_token"), Data(tokens).Text("oauth_token_secret")
	if consumer == "" {
		return &MissingError{kind, "consumerKey"}
	}
	method := cmp.Or(data.Text("signatureMethod"), "HMAC-SHA1")
	newHash, ok := oauth1Methods[method]
	if !ok {
		return fmt.Errorf("the signature method %q of the credential is not known; want HMAC-SHA1, HMAC-SHA256 or HMAC-SHA512", method)
	}
	g.Sign = func(req *http.Request, body []byte, now time.Time) error {
		var random [16]byte
		_, _ = rand.Read(random[:])
		own := []Pair{
			{"oauth_consumer_key", consumer}, {"oauth_nonce", hex.EncodeToString(random[:])}, {"oauth_signature_method", method},
			{"oauth_timestamp", strconv.FormatInt(now.Unix(), 10)}, {"oauth_version", "1.0"},
		}
		if token != "" {
			own = append(own, Pair{"oauth_token", token})
		}
		all := append(slices.Clone(own), pairsOf(req.URL.Query())...)
		if req.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
			form, err := url.ParseQuery(string(body))
			if err != nil {
				return fmt.Errorf("the form cannot be signed: it is no form")
			}
			all = append(all, pairsOf(form)...)
		}
		at := *req.URL
		at.RawQuery, at.Fragment = "", ""
		at.Scheme, at.Host = strings.ToLower(at.Scheme), strings.ToLower(at.Host)
		text := strings.Join([]string{strings.ToUpper(req.Method), escape(at.String()), escape(sortedPairs(all))}, "&")
		signature := mac(newHash, []byte(escape(consumerSecret)+"&"+escape(tokenSecret)), text)
		own = append(own, Pair{"oauth_signature", base64.StdEncoding.EncodeToString(signature)})
		parts := make([]string, len(own))
		for i, p := range own {
			parts[i] = p.Name + `="` + escape(p.Value) + `"`
		}
		req.Header.Set("Authorization", "OAuth "+strings.Join(parts, ", "))
		return nil
	}
	return nil
}
