package node

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/reprise-engine/reprise/pkg/workflow"
)

func TestSmallFilesStayInTheirItems(t *testing.T) {
	store := &MemoryFiles{}
	f := &Files{Store: store, Execution: "e", InlineBytes: 10, MaxBytes: 100}
	small, err := f.Save(t.Context(), workflow.Binary{FileName: "a.csv"}, strings.NewReader("0123456789"))
	require.NoError(t, err)
	require.Equal(t, workflow.Binary{FileName: "a.csv", FileExtension: "csv", MimeType: "text/csv", FileType: "text", FileSize: "10 B", Data: "MDEyMzQ1Njc4OQ=="}, small)
	large, err := f.Save(t.Context(), workflow.Binary{MimeType: "image/png"}, strings.NewReader("0123456789a"))
	require.NoError(t, err)
	require.Equal(t, workflow.Binary{FileExtension: "png", MimeType: "image/png", FileType: "image", FileSize: "11 B", Data: "memory", ID: "memory:e/1", Bytes: 11}, large)
	for file, want := range map[workflow.Binary]string{small: "0123456789", large: "0123456789a", {Data: "aGk"}: "hi", {Data: "aG\nk=\n"}: "hi"} {
		got, err := f.Read(t.Context(), file, 11)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	_, err = f.Read(t.Context(), large, 10)
	require.ErrorIs(t, err, ErrFileTooLarge)
	_, err = f.Save(t.Context(), small, strings.NewReader(strings.Repeat("x", 101)))
	require.ErrorIs(t, err, ErrFileTooLarge)
	torn := errors.New("torn")
	_, err = f.Save(t.Context(), small, io.MultiReader(strings.NewReader(strings.Repeat("x", 50)), iotest.ErrReader(torn)))
	require.ErrorIs(t, err, torn)
	require.Equal(t, 1, store.Len(), "of what failed nothing is kept")
	require.NoError(t, f.Discard(t.Context()))
	_, err = f.Open(t.Context(), large)
	require.ErrorIs(t, err, ErrFileGone)
}

func TestWithoutStoreFilesStayInTheirItems(t *testing.T) {
	var none *Files
	for _, f := range []*Files{none, {MaxUnstoredBytes: DefaultMaxUnstoredBytes}} {
		text := strings.Repeat("x", DefaultInlineFileBytes+1)
		file, err := f.Save(t.Context(), workflow.Binary{}, strings.NewReader(text))
		require.NoError(t, err)
		require.Empty(t, file.ID)
		got, err := f.Read(t.Context(), file, int64(len(text)))
		require.NoError(t, err)
		require.Equal(t, text, string(got))
		_, err = f.Open(t.Context(), workflow.Binary{ID: "nats:e/x"})
		require.ErrorContains(t, err, "cannot reach")
		_, err = f.Open(t.Context(), workflow.Binary{FileName: "a", Data: "%"})
		require.EqualError(t, err, `file "a" is not valid base64`)
	}
	few := &Files{MaxUnstoredBytes: 10}
	_, err := few.Save(t.Context(), workflow.Binary{}, strings.NewReader("123456"))
	require.NoError(t, err)
	_, err = few.Save(t.Context(), workflow.Binary{}, strings.NewReader("123456"))
	require.ErrorIs(t, err, ErrFileTooLarge, "all files of the run share the limit")
}
