package api

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/reprise-engine/reprise/pkg/engine"
	"github.com/reprise-engine/reprise/pkg/queue"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

const pageType = "text/html; charset=utf-8"

var (
	page = template.Must(template.New("page").Parse(pageText))
	// The page has no script, loads nothing, sends its form here and is shown in no frame.
	pagePolicy = "default-src 'none'; style-src 'sha256-" + digest(pageStyle) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func securePage(header http.Header) {
	header.Set("Content-Security-Policy", pagePolicy)
	header.Set("X-Frame-Options", "DENY")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("X-Robots-Tag", "noindex, nofollow")
}

// view answers about a question, with a page or as JSON.
type view struct {
	w      http.ResponseWriter
	json   bool
	choice string // the button that the link is for; it only gets the focus
	now    time.Time
}

// pageData is what page.html shows. Texts have gone through visible.
type pageData struct {
	Style    template.CSS
	Heading  string
	Message  string
	Again    bool // offers to open the link again
	Question *questionData
	Form     *formData
}

type questionData struct {
	Text, Workflow, Node, Tool, Arguments, Expires, Feedback string
}

type formData struct {
	Approve, Deny string // labels
	FreeText      bool
	Choice        string
}

// ask shows an open question.
func (v view) ask(a *queue.Approval) {
	if v.json {
		writeJSON(v.w, http.StatusOK, public(a))
		return
	}
	form := &formData{Approve: visible(a.Approve), Deny: visible(a.Deny), FreeText: a.FreeText, Choice: v.choice}
	switch {
	case form.Approve != "":
	case a.FreeText:
		form.Approve = "Send"
	default:
		form.Approve = "Approve"
	}
	v.write(http.StatusOK, pageData{Heading: heading(a), Question: v.question(a), Form: form})
}

// recorded says that the decision has been taken.
func (v view) recorded(a *queue.Approval) {
	if v.json {
		writeJSON(v.w, http.StatusOK, map[string]any{"id": a.ID, "outcome": a.Outcome})
		return
	}
	v.write(http.StatusOK, pageData{
		Heading: "Recorded: " + outcomeText(a), Message: "You can close this page.", Question: v.question(a),
	})
}

// settled says what became of a question that is no longer open.
func (v view) settled(a *queue.Approval) {
	status, code := http.StatusConflict, queue.CodeConflict
	message := "This question was decided before: " + outcomeText(a) + "."
	switch a.Outcome {
	case engine.OutcomeExpired:
		status, code, message = http.StatusGone, queue.CodeGone, "This question has expired, nobody answered it in time."
	case engine.OutcomeCanceled:
		status, code, message = http.StatusGone, queue.CodeGone, "This question was withdrawn, its execution is over."
	}
	if v.json {
		writeJSON(v.w, status, struct {
			queue.Problem
			Outcome engine.Outcome `json:"outcome"`
		}{queue.Problem{Code: code, Message: message}, a.Outcome})
		return
	}
	if a.Decision != nil && a.Decision.At > 0 && status == http.StatusConflict {
		message += " That was on " + moment(a.Decision.At) + "."
	}
	headline := "This question is no longer open"
	if a.Title != "" {
		headline = visible(a.Title)
	}
	v.write(status, pageData{Heading: headline, Message: message, Question: v.question(a)})
}

// refuse says why nothing is shown or decided.
func (v view) refuse(status int, code, headline, message string) {
	if v.json {
		fail(v.w, status, code, strings.ToLower(headline[:1])+headline[1:]+": "+message)
		return
	}
	again := status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status >= 500
	v.write(status, pageData{Heading: headline, Message: message, Again: again})
}

func (v view) write(status int, data pageData) {
	data.Style = template.CSS(pageStyle)
	var b bytes.Buffer
	if err := page.Execute(&b, data); err != nil { // the template and its data are ours
		fail(v.w, http.StatusInternalServerError, queue.CodeInternal, "the page cannot be shown")
		return
	}
	v.w.Header().Set("Content-Type", pageType)
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b.Bytes())
}

func heading(a *queue.Approval) string {
	switch {
	case a.Title != "":
		return visible(a.Title)
	case a.FreeText:
		return "Your answer is needed"
	}
	return "Your approval is needed"
}

func outcomeText(a *queue.Approval) string {
	switch {
	case a.Outcome == engine.OutcomeApproved && a.FreeText:
		return "answered"
	default:
		return string(a.Outcome)
	}
}

func (v view) question(a *queue.Approval) *questionData {
	q := &questionData{
		Text: visible(a.Text), Workflow: visible(a.Workflow), Node: visible(a.Node), Tool: visible(a.Tool),
		Arguments: shownArguments(a.Arguments),
	}
	if a.Expires > 0 && a.Outcome == "" {
		q.Expires = moment(a.Expires) + ", " + remaining(time.UnixMilli(a.Expires).Sub(v.now))
	}
	if a.Decision != nil {
		q.Feedback = visible(a.Decision.Feedback)
	}
	return q
}

// public is a question as a program gets it that has the link already.
func public(a *queue.Approval) queue.Approval {
	out := *a
	out.URL = ""
	return out
}

// shownArguments lays the arguments out, every one of them, as they are: they
// are what the decision is about.
func shownArguments(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return visible(string(raw))
	}
	return visible(b.String())
}

// visible writes characters that cannot be seen, or that change the order in which
// others are shown, as \u escapes: nobody is to approve something else than what
// is shown.
func visible(text string) string {
	hidden := func(r rune) bool {
		switch r {
		case '\n', '\t', '\u200c', '\u200d': // the joiners belong to several scripts, and to emoji
			return false
		case '\u2028', '\u2029':
			return true
		}
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	}
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\r':
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func moment(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2 January 2006, 15:04 UTC")
}

// remaining says how long it is to a moment, in one unit.
func remaining(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := int(d / unit.length); n == 1 {
			return "in 1 " + unit.name
		} else if n > 1 {
			return "in " + strconv.Itoa(n) + " " + unit.name + "s"
		}
	}
	return "now"
}
