package node

import (
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

// extensions by media type, for names of files; what is missing is taken from
// the file's own name.
var extensions = map[string]string{
	"application/gzip": "gz", "application/json": "json", "application/msword": "doc", "application/octet-stream": "bin",
	"application/pdf": "pdf", "application/rtf": "rtf", "application/vnd.ms-excel": "xls", "application/vnd.ms-powerpoint": "ppt",
	"application/vnd.oasis.opendocument.spreadsheet":                            "ods",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         "xlsx",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   "docx",
	"application/xml": "xml", "application/zip": "zip", "audio/mpeg": "mp3", "audio/ogg": "oga", "audio/wav": "wav",
	"image/gif": "gif", "image/jpeg": "jpg", "image/png": "png", "image/svg+xml": "svg", "image/webp": "webp",
	"text/calendar": "ics", "text/css": "css", "text/csv": "csv", "text/html": "html", "text/markdown": "md",
	"text/plain": "txt", "text/rtf": "rtf", "text/xml": "xml", "video/mp4": "mp4", "video/webm": "webm",
}

// mediaTypes by extension, for files that have no more than a name.
var mediaTypes = func() map[string]string {
	types := map[string]string{
		"htm": "text/html", "jpeg": "image/jpeg", "log": "text/plain", "txt": "text/plain", "xml": "application/xml",
		"rtf": "application/rtf", "ogg": "audio/ogg", "js": "text/javascript", "yaml": "text/yaml", "yml": "text/yaml",
		"tar": "application/x-tar", "eml": "message/rfc822",
	}
	for mediaType, extension := range extensions {
		if _, ok := types[extension]; !ok {
			types[extension] = mediaType
		}
	}
	return types
}()

// Describe fills what is left open in the description of a file: its media type from the name,
// else from its first bytes, and from that the extension and the coarse kind.
func Describe(file workflow.Binary, head []byte) workflow.Binary {
	suffix := strings.ToLower(strings.TrimPrefix(path.Ext(file.FileName), "."))
	if file.MimeType == "" {
		file.MimeType = mediaTypes[suffix]
	}
	if file.MimeType == "" {
		file.MimeType, _, _ = strings.Cut(http.DetectContentType(head), ";")
	}
	if file.FileExtension == "" {
		file.FileExtension = extensions[file.MimeType]
	}
	if file.FileExtension == "" {
		file.FileExtension = suffix
	}
	if file.FileType == "" {
		file.FileType = fileType(file.MimeType)
	}
	return file
}

// fileType is n8n's coarse kind, by which its interface shows a file.
func fileType(mimeType string) string {
	switch {
	case mimeType == "application/json":
		return "json"
	case mimeType == "text/html":
		return "html"
	case mimeType == "application/pdf":
		return "pdf"
	}
	kind, _, _ := strings.Cut(mimeType, "/")
	switch kind {
	case "image", "video", "audio", "text":
		return kind
	}
	return ""
}

// FileSize writes bytes for people: "46 B", "1.5 kB".
func FileSize(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	size, unit := float64(n), ""
	for _, unit = range []string{"kB", "MB", "GB", "TB"} {
		if size /= 1000; size < 999.5 {
			break
		}
	}
	decimals := 0
	switch {
	case size < 9.995:
		decimals = 2
	case size < 99.95:
		decimals = 1
	}
	text := strconv.FormatFloat(size, 'f', decimals, 64)
	if decimals > 0 {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text + " " + unit
}
