package credential

import (
	"crypto/md5"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTypes(t *testing.T) {
	for _, test := range []struct {
		kind, data string
		name, want string // a header, or a query parameter with "?" before it
	}{
		{"githubApi", "accessToken=k", "Authorization", "token k"},
		{"discordBotApi", "botToken=k", "Authorization", "Bot k"},
		{"facebookGraphApi", "accessToken=k", "?access_token", "k"},
		{"trelloApi", "apiKey=a&apiToken=k", "?token", "k"},
		{"zendeskApi", "email=e&apiToken=k", "Authorization", "Basic ZS90b2tlbjpr"},
		{"wooCommerceApi", "consumerKey=e&consumerSecret=k", "Authorization", "Basic ZTpr"},
		{"mailgunApi", "apiKey=k", "Authorization", "Basic YXBpOms="},
		{"openAiApi", "apiKey=k&organizationId=org", "OpenAI-Organization", "org"},
		{"supabaseApi", "serviceRole=k", "apikey", "k"},
		{"notionApi", "apiKey=k", "Notion-Version", "2022-02-22"},
		{"nocoDbApiToken", "apiToken=k", "xc-token", "k"},
		{"qdrantApi", "qdrantUrl=u", "api-key", ""},
		{"someNewApi", "apiKey=k", "Authorization", "Bearer k"},
		{"someOtherApi", "username=e&password=k", "Authorization", "Basic ZTpr"},
		{"httpQueryAuth", "name=q&value=k", "?q", "k"},
	} {
		t.Run(test.kind, func(t *testing.T) {
			g, err := New(test.kind, data(t, test.data))
			require.NoError(t, err)
			if name, ok := strings.CutPrefix(test.name, "?"); ok {
				require.Contains(t, g.Query, Pair{name, test.want})
				return
			}
			require.Equal(t, test.want, g.Headers[test.name])
		})
	}
}

func data(t *testing.T, text string) Data {
	t.Helper()
	values, err := url.ParseQuery(text)
	require.NoError(t, err)
	d := Data{}
	for name := range values {
		d[name] = values.Get(name)
	}
	return d
}

func TestBadData(t *testing.T) {
	for kind, want := range map[string]string{
		"githubApi":   `a credential of type githubApi needs "accessToken", which is empty`,
		"zendeskApi":  "which is empty",
		"serpApi":     `needs "apiKey"`,
		"oAuth2Api":   `needs "oauthTokenData.access_token"`,
		"oAuth1Api":   `needs "consumerKey"`,
		"aws":         "are not supported by this node",
		"whateverApi": "are not supported by this node",
	} {
		_, err := New(kind, nil)
		require.ErrorContains(t, err, want, kind)
	}
	_, err := New("oAuth1Api", Data{"consumerKey": "k", "signatureMethod": "PLAIN"})
	require.ErrorContains(t, err, `"PLAIN"`)
}

func TestTestURL(t *testing.T) {
	for _, test := range []struct{ kind, data, want string }{
		{"openAiApi", "url=http://host/v1/", "http://host/v1/models"},
		{"openAiApi", "", "https://api.openai.com/v1/models"},
		{"shopifyAccessTokenApi", "shopSubdomain=mine", "https://mine.myshopify.com/admin/api/2024-07/shop.json"},
		{"telegramApi", "accessToken=1:a/b", "https://api.telegram.org/bot1:a%2Fb/getMe"},
		{"wordpressApi", "", ""}, // has no url
		{"httpHeaderAuth", "", ""},
	} {
		got, ok := TestURL(test.kind, data(t, test.data))
		require.Equal(t, test.want, got)
		require.Equal(t, test.want != "", ok)
	}
}

// The example of RFC 7616, section 3.9.1, with the server's own nonce but this client's.
func TestDigestAnswers(t *testing.T) {
	d := &Digest{User: "Mufasa", Password: "Circle of Life"}
	challenge := func(text string) http.Header { return http.Header{"Www-Authenticate": {"Basic realm=x", text}} }
	answer, err := d.Answer(challenge(`Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093"`), "GET", "/dir/index.html")
	require.NoError(t, err)
	sum := func(text string) string { return fmt.Sprintf("%x", md5.Sum([]byte(text))) }
	want := sum(sum("Mufasa:testrealm@host.com:Circle of Life") + ":dcd98b7102dd2f0e8b11d0f600bfb0c093:" + sum("GET:/dir/index.html"))
	require.Contains(t, answer, `response="`+want+`"`)
	answer, err = d.Answer(challenge(`Digest realm="r", qop="auth", algorithm=SHA-256-sess, nonce="n"`), "GET", "/")
	require.NoError(t, err)
	require.Regexp(t, `response="[0-9a-f]{64}", algorithm=SHA-256-sess, qop=auth, nc=00000001, cnonce="[0-9a-f]{16}"`, answer)
	for _, bad := range []string{``, `Digest`, `Digest realm="r`, `Digest nonce="n", algorithm=SHA3`, `Digest nonce="n", qop="auth-int"`, `Negotiate`} {
		_, err := d.Answer(challenge(bad), "GET", "/")
		require.ErrorIs(t, err, ErrNoChallenge, bad)
	}
}

// AWS's published example of Signature Version 4 (iam ListUsers).
func TestAWSSignature(t *testing.T) {
	req, err := http.NewRequest(http.MethodGet, "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", nil)
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	g, err := New("aws", Data{"region": "us-east-1", "accessKeyId": "AKIDEXAMPLE", "secretAccessKey": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "sessionToken": "st", "temporaryCredentials": true})
	require.NoError(t, err)
	now := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	require.NoError(t, g.Sign(req, nil, now))
	require.Equal(t, "st", req.Header.Get("X-Amz-Security-Token"))
	require.Contains(t, req.Header.Get("Authorization"), "Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature=")
	require.NotContains(t, req.Header.Get("Authorization"), "wJalr")
	key := []byte("AWS4wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
	for _, part := range []string{"20150830", "us-east-1", "iam", "aws4_request"} {
		key = mac(digests["SHA-256"], key, part)
	}
	require.Equal(t, "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9", fmt.Sprintf("%x", key), "the derived key that AWS publishes")
	for host, want := range map[string][2]string{
		"sqs.eu-central-1.amazonaws.com":          {"sqs", "eu-central-1"},
		"bucket.s3.us-west-2.amazonaws.com":       {"s3", "us-west-2"},
		"iam.amazonaws.com":                       {"iam", "eu-west-1"},
		"abc.execute-api.eu-west-3.amazonaws.com": {"execute-api", "eu-west-3"},
		"example.com":                             {"execute-api", "eu-west-1"},
	} {
		service, region := awsService(host, "eu-west-1")
		require.Equal(t, want, [2]string{service, region}, host)
	}
}

// The signature base of RFC 5849, section 3.4.1.1: parameters of the query and of the form are sorted
// together.
func TestOAuth1Signature(t *testing.T) {
	require.Equal(t, "a2=r%20b&a3=2%20q&a3=a&b5=%3D%253D&c%40=&c2=",
		sortedPairs([]Pair{{"b5", "=%3D"}, {"a3", "a"}, {"c@", ""}, {"a2", "r b"}, {"c2", ""}, {"a3", "2 q"}}))
	req, err := http.NewRequest(http.MethodPost, "http://EXAMPLE.com/request?a=1", nil)
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	g, err := New("oAuth1Api", Data{"consumerKey": "ck", "consumerSecret": "cs", "signatureMethod": "HMAC-SHA256", "oauthTokenData": map[string]any{"oauth_token": "t", "oauth_token_secret": "ts"}})
	require.NoError(t, err)
	require.NoError(t, g.Sign(req, []byte("z=9"), time.Unix(137131200, 0)))
	require.Regexp(t, `^OAuth .*oauth_signature_method="HMAC-SHA256", oauth_timestamp="137131200", oauth_version="1.0", oauth_token="t", oauth_signature="[^"]{40,}"$`, req.Header.Get("Authorization"))
	require.Error(t, g.Sign(req, []byte("%zz"), time.Unix(1, 0)))
}
