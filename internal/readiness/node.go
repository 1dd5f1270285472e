package readiness

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

// node checks what a node's type says of its settings, and collects what is to be compiled. Of
// a type that is not known nothing more can be said.
func (r *run) node(n *workflow.Node) {
	typ, ok := r.checker.Registry.Find(n.Type, n.TypeVersion)
	if !ok {
		return
	}
	r.limits(n, &typ.Support)
	r.options(n, &typ.Support)
	r.credentials(n, &typ.Support)
	r.calls(n)
	r.collect(n, "", gjson.ParseBytes(n.Parameters))
}

func (r *run) limits(n *workflow.Node, s *node.Support) {
	for _, l := range s.Limits {
		value, hit := l.Hit(n)
		if !hit {
			continue
		}
		what := n.Type + ": " + l.Parameter
		if l.Values != nil {
			what += " " + value
		}
		r.add(KindOption, r.fails(n), n.Name, "parameters."+l.Parameter, what, "%q is not supported: %s", clip(value), l.Advice)
	}
}

func (r *run) options(n *workflow.Node, s *node.Support) {
	for _, name := range s.UnknownOptions(n) {
		reason := "is not known here and changes nothing"
		if why, ok := s.Ignored[name]; ok {
			reason = "changes nothing: " + why
		}
		r.add(KindOption, workflow.SeverityWarning, n.Name, "parameters.options."+name, n.Type+": options."+name, "%s", reason)
	}
}

// credentials checks the kinds of a node's credentials and, when it can, whether they are there.
func (r *run) credentials(n *workflow.Node, s *node.Support) {
	kinds := make([]string, 0, len(n.Credentials))
	for kind := range n.Credentials {
		kinds = append(kinds, kind)
	}
	sort.Strings(kinds)
	for _, kind := range kinds {
		ref := n.Credentials[kind]
		if s.Credentials != nil && !slices.Contains(s.Credentials, kind) {
			r.add(KindCredentialType, r.fails(n), n.Name, "credentials."+kind, kind, "%s takes no credentials of this type; it takes %s",
				n.Type, strings.Join(s.Credentials, ", "))
			continue
		}
		if has := r.checker.HasCredential; has != nil && uses(n, kind) && !has(kind, ref) {
			r.add(KindCredential, r.fails(n), n.Name, "credentials."+kind, kind+" "+ref.Name, "there is no credential %q of this type (id %s)", ref.Name, ref.ID)
		}
	}
}

// uses reports whether a node reads its credential of a type: an HTTP Request keeps those of
// earlier choices.
func uses(n *workflow.Node, kind string) bool {
	authentication := gjson.GetBytes(n.Parameters, "authentication").Str
	switch authentication {
	case "genericCredentialType":
		return gjson.GetBytes(n.Parameters, "genericAuthType").Str == kind
	case "predefinedCredentialType":
		return gjson.GetBytes(n.Parameters, "nodeCredentialType").Str == kind
	}
	return !strings.Contains(n.Type, "httpRequest") || authentication != "" && authentication != "none"
}

// calls checks that the workflow that a node calls is there.
func (r *run) calls(n *workflow.Node) {
	switch n.Type {
	case "n8n-nodes-base.executeWorkflow", "@n8n/n8n-nodes-langchain.toolWorkflow":
	default:
		return
	}
	if source := gjson.GetBytes(n.Parameters, "source").Str; source != "" && source != "database" {
		return
	}
	id := gjson.GetBytes(n.Parameters, "workflowId")
	if id.IsObject() {
		id = id.Get("value")
	}
	r.called(id.String(), n.Name, "parameters.workflowId", r.fails(n))
}

// errorWorkflow checks that the workflow is there that is started when this one fails.
func (r *run) errorWorkflow() {
	if id := r.workflow.Settings.ErrorWorkflow; id != "DEFAULT" {
		r.called(id, "", "settings.errorWorkflow", workflow.SeverityWarning)
	}
}

func (r *run) called(id, node, field string, severity workflow.Severity) {
	has := r.checker.HasWorkflow
	if id == "" || strings.HasPrefix(id, "=") || has == nil || id == r.workflow.ID || has(id) {
		return
	}
	if !r.checker.Complete {
		severity = workflow.SeverityWarning
	}
	r.add(KindWorkflow, severity, node, field, id, "there is no workflow with the id %q here", id)
}

// scriptParameters are the parameters that hold scripts.
var scriptParameters = []string{"jsCode", "functionCode"}

// collect gathers the expressions and scripts in a parameter tree.
func (r *run) collect(n *workflow.Node, path string, v gjson.Result) {
	if v.IsObject() || v.IsArray() {
		index := 0
		v.ForEach(func(key, value gjson.Result) bool {
			name := key.Str
			if v.IsArray() {
				name = strconv.Itoa(index)
				index++
			}
			if path != "" {
				name = path + "." + name
			}
			r.collect(n, name, value)
			return true
		})
		return
	}
	if v.Type != gjson.String {
		return
	}
	switch {
	case strings.HasPrefix(v.Str, "="):
		r.texts = append(r.texts, place{n, path, v.Str})
	case slices.Contains(scriptParameters, path) && !strings.HasPrefix(gjson.GetBytes(n.Parameters, "language").Str, "python"):
		r.scripts = append(r.scripts, place{n, path, v.Str})
	}
}
