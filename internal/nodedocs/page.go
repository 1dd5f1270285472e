package nodedocs

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/reprise-engine/reprise/pkg/node"
)

// mostMissing is how many types that are not there the page lists.
const mostMissing = 60

// Page is docs/nodes.md.
func Page(r *node.Registry) (string, error) {
	types, err := readTypes()
	if err != nil {
		return "", err
	}
	known := map[string]bool{}
	for _, name := range r.Names() {
		known[name] = true
	}
	hasVersion := func(name string, version float64) bool { _, ok := r.Find(name, version); return ok }
	c, err := coverage(types, func(name string) bool { return known[name] }, hasVersion)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Node types

Written by `+"`go generate ./internal/nodedocs`"+` from the registry of node types and from counts over %s public workflows
(templates and collections up to January 2026).

- **Nodes:** %s of %s nodes in them (%.0f %%) are of a type and version that is here.
- **Workflows whose services, databases and models are pinned or mocked:** in %s all other nodes have types that are here.
- **Workflows as they are:** in %s all nodes have types that are here. Most of the others lack the node of a
  vendor's service; HTTP Request nodes can often take its place.

The counts say how often each type is used and not which are used together, so workflows are given with bounds. For your own:
`+"`reprise workflows validate FOLDER`"+` says of each file whether it can run and what it lacks.

## What is here

Options are the members of a node's "options" (for old versions also what has become one). Others are ignored, and
`+"`validate`"+` warns of them; – means that the type does not say. Share is the part of the public workflows that use the type.

| Type | Versions | Share | Options | Not supported, and notes |
|---|---|---|---|---|
`, group(workflows), group(c.Nodes), group(c.AllNodes), 100*float64(c.Nodes)/float64(c.AllNodes),
		between(c.PinnedLeast, c.PinnedMost), between(c.Least, c.Most))
	use := map[string]*counted{}
	for i := range types {
		use[types[i].name] = &types[i]
	}
	names := r.Names()
	sort.SliceStable(names, func(i, j int) bool { return usedIn(use[names[i]]) > usedIn(use[names[j]]) })
	for _, name := range names {
		writeType(&b, r, name, use[name])
	}
	writeMissing(&b, types, known)
	writeDifferences(&b)
	return b.String(), nil
}

func usedIn(c *counted) int {
	if c == nil {
		return 0
	}
	return c.workflows
}

func share(c *counted) string {
	if c == nil {
		return "–"
	}
	return strconv.FormatFloat(percent(c.workflows), 'f', 1, 64) + " %"
}

func between(least, most float64) string {
	return fmt.Sprintf("%.0f to %.0f %%", least, most)
}

func writeType(b *strings.Builder, r *node.Registry, name string, use *counted) {
	versions := []float64{}
	var s node.Support
	for _, t := range r.Types(name) {
		versions = append(versions, t.Versions...)
		if t.Support.Options != nil || t.Support.Limits != nil || t.Support.Note != "" {
			s = t.Support
		}
	}
	slices.Sort(versions)
	texts := make([]string, len(versions))
	for i, v := range versions {
		texts[i] = strconv.FormatFloat(v, 'g', -1, 64)
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", short(name), strings.Join(texts, ", "), share(use), optionsText(&s), limitsText(&s, use, versions))
}

func optionsText(s *node.Support) string {
	switch {
	case s.Options == nil:
		return "–"
	case len(s.Options) == 0:
		return "none"
	}
	return strings.Join(s.Options, ", ")
}

func limitsText(s *node.Support, use *counted, versions []float64) string {
	var parts []string
	for _, l := range s.Limits {
		text := l.Parameter
		if l.Values != nil {
			text += " " + strings.Join(l.Values, ", ")
		}
		parts = append(parts, text+": "+l.Advice)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Ignored)) {
		parts = append(parts, name+" is ignored: "+s.Ignored[name])
	}
	if use != nil {
		var others []float64
		for v := range use.versions {
			if !slices.Contains(versions, v) {
				others = append(others, v)
			}
		}
		slices.Sort(others)
		for _, v := range others {
			parts = append(parts, fmt.Sprintf("version %v (%d nodes)", v, use.versions[v]))
		}
	}
	if s.Note != "" {
		parts = append(parts, s.Note)
	}
	return strings.ReplaceAll(strings.Join(parts, "; "), "|", "\\|")
}

func writeMissing(b *strings.Builder, types []counted, known map[string]bool) {
	fmt.Fprintf(b, `
## What is not

The %d types that are not here and that most public workflows use. Pinned data stands in for a node of any type in manual runs.

| Type | Share | Kind |
|---|---|---|
`, mostMissing)
	missing := slices.DeleteFunc(slices.Clone(types), func(c counted) bool { return known[c.name] })
	sort.SliceStable(missing, func(i, j int) bool { return missing[i].workflows > missing[j].workflows })
	for i := range missing[:min(len(missing), mostMissing)] {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", short(missing[i].name), share(&missing[i]), kind(&missing[i]))
	}
}

// kind is the class of a type in words.
func kind(c *counted) string {
	switch c.class {
	case "core":
		return "data and flow"
	case "core-net":
		return "network protocol"
	case "core-self":
		return "the engine"
	case "core-host":
		return "the machine"
	case "ai-core":
		return "AI"
	case "ai-model":
		return "language model"
	case "ai-store":
		return "vector store or memory"
	case "db":
		return "database"
	case "community":
		return "community package"
	}
	return "service"
}

// short leaves out the package that most types are of.
func short(name string) string {
	name = strings.TrimPrefix(name, "n8n-nodes-base.")
	return strings.Replace(name, "@n8n/n8n-nodes-langchain.", "langchain.", 1)
}

// group writes a number with commas between thousands.
func group(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
