// Package disk holds the node types that read and write files of the machine a worker runs on: Read/Write
// Files from Disk and its elders Read Binary File, Read Binary Files and Write Binary File.
//
// They reach the folders of Config.Folders and nothing else: a path is cleaned, has to lie in one of them, and is
// opened through os.Root, so no ".." and no symbolic link leads out of it. Without folders every access is
// refused, with the name of the setting. A relative path begins at the first folder.
//
// Files go from and to disk as streams. A written file appears whole: it is made beside its place and then moved
// there, so that whoever reads the folder sees the file before or the file after, also when the worker dies in
// between. Appending cannot be done so; a run that appends is not repeated when its worker is lost, unless its
// workflow says so.
package disk

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/reprise-engine/reprise/pkg/node"
	"github.com/reprise-engine/reprise/pkg/workflow"
)

const base = "n8n-nodes-base."

// Setting is what an operator sets to allow folders.
const Setting = "REPRISE_FILES_DIRS"

// Config of the node types; the zero value allows no folder.
type Config struct {
	// Folders whose files may be read and written, with what lies below them. Empty entries are ignored.
	Folders []string
}

// Types returns the node types.
func (c Config) Types() []*node.Type {
	f := newFolders(c.Folders)
	return node.Supporting([]*node.Type{
		{
			Spec:    workflow.Spec{Type: base + "readWriteFile", Versions: []float64{1, 1.1}},
			Once:    appends,
			Execute: f.readWriteFile,
		},
		{
			Spec:    workflow.Spec{Type: base + "readBinaryFile", Versions: []float64{1}},
			Execute: f.readBinaryFile,
		},
		{
			Spec:    workflow.Spec{Type: base + "readBinaryFiles", Versions: []float64{1}},
			Execute: f.readBinaryFiles,
		},
		{
			Spec:    workflow.Spec{Type: base + "writeBinaryFile", Versions: []float64{1}},
			Once:    appends,
			Execute: f.writeBinaryFile,
		},
	}, support)
}

// appends reports whether a repetition would write the data twice. An expression counts as yes.
func appends(n *workflow.Node) bool {
	v := gjson.GetBytes(n.Parameters, "options.append")
	return v.Bool() || strings.HasPrefix(v.Str, "=")
}

const note = "only in the folders of " + Setting + "; a relative path begins at the first of them"

var support = map[string]node.Support{
	base + "readWriteFile": {
		Options: []string{"append", "dataPropertyName", "fileExtension", "fileName", "mimeType"},
		Note:    note,
	},
	base + "readBinaryFile":  {Options: []string{}, Note: note},
	base + "readBinaryFiles": {Options: []string{}, Note: note},
	base + "writeBinaryFile": {Options: []string{"append"}, Note: note},
}
