package web

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// Page is a form to fill in. It is what a form node waits with, so its JSON is stored.
type Page struct {
	Title       string  `json:"title,omitempty"`
	Description string  `json:"description,omitempty"`
	Button      string  `json:"button,omitempty"` // "" is Submit
	Fields      []Field `json:"fields"`
	Zone        string  `json:"zone,omitempty"` // of submittedAt; "" is UTC
	// After is what follows when it was sent; nil is the next page of the same form.
	After *After `json:"after,omitempty"`
}

// After is what the person who sent a form is shown.
type After struct {
	Mode string `json:"mode"`
	// With is "text" or "redirect".
	With     string `json:"with"`
	Text     string `json:"text,omitempty"`
	Redirect string `json:"redirect,omitempty"`
}

// The modes of an After: when it is shown, or that a node shows something else.
const (
	OnReceived   = "onReceived"
	LastNode     = "lastNode"
	ResponseNode = "responseNode"
)

// DefaultEnd is what a person reads who sent a form whose node says nothing else.
const DefaultEnd = "Your response has been recorded"

// Field is one of a Page. Name is its key in the item.
type Field struct {
	Name        string   `json:"name"`
	Label       string   `json:"label,omitempty"`
	Type        string   `json:"type"` // n8n's fieldType
	Placeholder string   `json:"placeholder,omitempty"`
	Value       string   `json:"value,omitempty"` // what it begins with
	Required    bool     `json:"required,omitempty"`
	Multiple    bool     `json:"multiple,omitempty"`
	Options     []string `json:"options,omitempty"`
	Accept      string   `json:"accept,omitempty"`
	HTML        string   `json:"html,omitempty"`
	DateFormat  string   `json:"dateFormat,omitempty"`
}

// Upload is a file that was sent with a form, Input the name of the input it came in.
type Upload struct {
	Input string
	File  workflow.Binary
	Bytes int
}

// Input is the name of the input of the i-th field.
func Input(i int) string { return "field-" + strconv.Itoa(i) }

// fieldTypes are those that a page can show.
var fieldTypes = map[string]bool{
	"text": true, "textarea": true, "number": true, "email": true, "password": true, "date": true, "dropdown": true, "select": true,
	"checkbox": true, "radio": true, "file": true, "hiddenField": true, "html": true,
}

// ReadPage makes a page of parameters in which expressions are evaluated: those of the form
// trigger or of a form node.
func ReadPage(title, description, button string, fields gjson.Result) (*Page, error) {
	p := &Page{Title: title, Description: description, Button: button}
	for i, v := range fields.Array() {
		f := Field{
			Name: v.Get("fieldName").String(), Label: v.Get("fieldLabel").String(), Type: v.Get("fieldType").String(),
			Placeholder: v.Get("placeholder").String(), Value: v.Get("defaultValue").String(), Required: v.Get("requiredField").Bool(),
			Multiple: v.Get("multiselect").Bool() || v.Get("multipleFiles").Bool(), Accept: v.Get("acceptFileTypes").String(),
			HTML: v.Get("html").String(), DateFormat: v.Get("formatDate").String(),
		}
		if f.Type == "" {
			f.Type = "text"
		}
		if f.Type == "hiddenField" {
			f.Value = v.Get("fieldValue").String()
		}
		if f.Type == "html" && f.Name == "" {
			f.Name = v.Get("elementName").String()
		}
		if f.Name == "" || v.Get("fieldLabel").Exists() && f.Type != "hiddenField" && !v.Get("fieldName").Exists() {
			f.Name = f.Label
		}
		if !fieldTypes[f.Type] {
			return nil, fmt.Errorf("field %d has the unknown type %q", i+1, f.Type)
		}
		for _, o := range v.Get("fieldOptions.values").Array() {
			f.Options = append(f.Options, o.Get("option").String())
		}
		if f.Type == "file" && !v.Get("multipleFiles").Exists() {
			f.Multiple = true // as in n8n
		}
		p.Fields = append(p.Fields, f)
	}
	return p, nil
}

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"input": Input,
	"html":  func(text string) template.HTML { return template.HTML(text) }, //nolint:gosec // of the workflow's author; the page's policy allows no scripts
}).Parse(pageText))

// Shown is what the template of all pages of forms shows.
type Shown struct {
	*Page
	// Token of the wait that the page ends, "" for the first.
	Token string
	// Problem is said above the form. Message takes the form's place, and Refresh has the browser ask
	// again in so many seconds.
	Problem, Message string
	Refresh          int
}

// Template renders a Shown.
func Template() *template.Template { return pageTemplate }

// Render makes HTML of it.
func (s Shown) Render() string {
	var b strings.Builder
	if s.Page == nil {
		s.Page = &Page{}
	}
	if err := pageTemplate.Execute(&b, s); err != nil {
		return "the page cannot be shown"
	}
	return b.String()
}

var notWord = regexp.MustCompile(`\W`)

// Item makes the item of what was sent. problem says what the person must mend, "" when all is
// well.
func (p *Page) Item(values map[string][]string, files []Upload, now time.Time) (item workflow.Item, problem string) {
	out := make([]string, 0, len(p.Fields)+2)
	add := func(name string, value any) {
		out = append(out, string(encode(name))+":"+string(encode(value)))
	}
	item.Binary = map[string]workflow.Binary{}
	for i, f := range p.Fields {
		sent := values[Input(i)]
		first := ""
		if len(sent) > 0 {
			first = sent[0]
		}
		switch f.Type {
		case "html":
			if f.Name != "" {
				add(f.Name, f.HTML)
			}
			continue
		case "file":
			if problem = p.files(i, &item, files, add); problem != "" {
				return item, problem
			}
			continue
		case "hiddenField":
			add(f.Name, f.Value)
			continue
		}
		if f.Required && strings.TrimSpace(strings.Join(sent, "")) == "" {
			return item, fmt.Sprintf("%q must be filled in", f.Label)
		}
		value, problem := f.value(sent, first)
		if problem != "" {
			return item, problem
		}
		add(f.Name, value)
	}
	zone := time.UTC
	if z, err := time.LoadLocation(p.Zone); err == nil {
		zone = z
	}
	add("submittedAt", now.In(zone).Format("2006-01-02T15:04:05.000-07:00"))
	add("formMode", "production")
	item.JSON = json.RawMessage("{" + strings.Join(out, ",") + "}")
	if len(item.Binary) == 0 {
		item.Binary = nil
	}
	return item, ""
}

// value is what one field gives.
func (f *Field) value(sent []string, first string) (value any, problem string) {
	isOption := func(text string) bool {
		for _, o := range f.Options {
			if o == text {
				return true
			}
		}
		return len(f.Options) == 0
	}
	switch f.Type {
	case "checkbox", "dropdown", "select", "radio":
		kept := []string{}
		for _, text := range sent {
			if text == "" {
				continue
			}
			if !isOption(text) {
				return nil, fmt.Sprintf("%q is no choice of %q", text, f.Label)
			}
			kept = append(kept, text)
		}
		if f.Type == "checkbox" || f.Multiple {
			return kept, ""
		}
		return first, ""
	case "number":
		if first == "" {
			return nil, ""
		}
		n, err := strconv.ParseFloat(first, 64)
		if err != nil {
			return nil, fmt.Sprintf("%q must be a number", f.Label)
		}
		return n, ""
	case "email":
		if first != "" && !strings.Contains(first, "@") {
			return nil, fmt.Sprintf("%q must be an email address", f.Label)
		}
	case "date":
		if first != "" {
			day, err := time.Parse(time.DateOnly, first)
			if err != nil {
				return nil, fmt.Sprintf("%q must be a date", f.Label)
			}
			if f.DateFormat != "" {
				return formatDate(day, f.DateFormat), ""
			}
		}
	}
	return first, ""
}

// formatDate knows the usual letters of Luxon's formats.
func formatDate(day time.Time, format string) string {
	return strings.NewReplacer("yyyy", day.Format("2006"), "YYYY", day.Format("2006"), "yy", day.Format("06"), "MM", day.Format("01"),
		"dd", day.Format("02"), "DD", day.Format("02")).Replace(format)
}

// files adds the files of the i-th field to the item.
func (p *Page) files(i int, item *workflow.Item, files []Upload, add func(string, any)) (problem string) {
	f := &p.Fields[i]
	type description struct {
		Name string `json:"filename"`
		Type string `json:"mimetype"`
		Size int    `json:"size"`
	}
	var described []description
	for _, u := range files {
		if u.Input != Input(i) || u.Bytes == 0 && u.File.FileName == "" {
			continue
		}
		if len(described) > 0 && !f.Multiple {
			return fmt.Sprintf("%q takes one file", f.Label)
		}
		if !accepted(f.Accept, u.File) {
			return fmt.Sprintf("%q does not take this kind of file: %s", f.Label, u.File.FileName)
		}
		name := notWord.ReplaceAllString(f.Name, "_")
		if f.Multiple {
			name += "_" + strconv.Itoa(len(described))
		}
		item.Binary[name] = u.File
		described = append(described, description{u.File.FileName, u.File.MimeType, u.Bytes})
	}
	switch {
	case len(described) == 0 && f.Required:
		return fmt.Sprintf("%q needs a file", f.Label)
	case f.Multiple:
		if described == nil {
			described = []description{}
		}
		add(f.Name, described)
	case len(described) == 0:
		add(f.Name, nil)
	default:
		add(f.Name, described[0])
	}
	return ""
}

// accepted reports whether a file is of the kinds that a field names, by ending or type.
func accepted(kinds string, file workflow.Binary) bool {
	if strings.TrimSpace(kinds) == "" {
		return true
	}
	for _, kind := range strings.Split(kinds, ",") {
		kind = strings.ToLower(strings.TrimSpace(kind))
		major, all := strings.CutSuffix(kind, "/*")
		if strings.HasPrefix(kind, ".") && strings.HasSuffix(strings.ToLower(file.FileName), kind) || kind == file.MimeType ||
			all && strings.HasPrefix(file.MimeType, major+"/") {
			return true
		}
	}
	return false
}
