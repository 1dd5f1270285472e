package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/uuid"

	"github.com/reprise-engine/reprise/pkg/node"
)

// maxMatches bounds the files of one pattern.
const maxMatches = 10_000

var (
	errNoFolders  = errors.New("workflows may not use files of this machine; whoever runs the workers can allow folders with " + Setting)
	errOutside    = errors.New("the path is outside the folders that workflows may use; whoever runs the workers can allow more with " + Setting)
	errNotRegular = errors.New("it is no regular file")
)

// folders are what may be reached: absolute, clean paths.
type folders []string

func newFolders(list []string) (f folders) {
	for _, dir := range list {
		if dir = strings.TrimSpace(dir); dir == "" {
			continue
		}
		if absolute, err := filepath.Abs(dir); err == nil {
			f = append(f, absolute)
		}
	}
	return f
}

// place is a path within a folder.
type place struct {
	folder string
	name   string // with slashes, relative to folder
}

func (p place) String() string { return path.Join(filepath.ToSlash(p.folder), p.name) }

// find says where a path lies. Of folders within folders it takes the innermost.
func (f folders) find(name string) (place, error) {
	switch {
	case len(f) == 0:
		return place{}, errNoFolders
	case strings.TrimSpace(name) == "":
		return place{}, errors.New("no path is given")
	case strings.ContainsRune(name, 0):
		return place{}, errors.New("the path holds a zero byte")
	}
	name = filepath.FromSlash(name)
	if !filepath.IsAbs(name) {
		name = filepath.Join(f[0], name)
	}
	name = filepath.Clean(name)
	best := place{}
	for _, dir := range f {
		rest, err := filepath.Rel(dir, name)
		if err == nil && filepath.IsLocal(rest) && len(dir) > len(best.folder) {
			best = place{dir, filepath.ToSlash(rest)}
		}
	}
	if best.folder == "" {
		return place{}, errOutside
	}
	return best, nil
}

// in calls work with the folder of a path.
func (p place) in(work func(*os.Root) error) error {
	root, err := os.OpenRoot(p.folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return work(root)
}

// read calls work with an open file.
func (p place) read(work func(io.Reader) error) error {
	return p.in(func(root *os.Root) error {
		// Without O_NONBLOCK a named pipe would hold the run until somebody writes to it.
		file, err := root.OpenFile(p.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return errNotRegular
		}
		return work(file)
	})
}

// match lists the files of a pattern in the order of their names. A path that is there by just this name is itself, whatever
// characters it has.
func (f folders) match(ctx context.Context, pattern string) (found []place, err error) {
	p, err := f.find(pattern)
	if err != nil {
		return nil, err
	}
	err = p.in(func(root *os.Root) error {
		info, err := root.Stat(p.name)
		switch {
		case err == nil && info.Mode().IsRegular():
			found = append(found, p)
			return nil
		case errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir():
		case err != nil && !strings.ContainsAny(p.name, "*?[{"):
			return err
		}
		if !doublestar.ValidatePattern(p.name) {
			return fmt.Errorf("the pattern %q is not valid", pattern)
		}
		// What cannot be opened within the folder, such as a link out of it, is passed over.
		return doublestar.GlobWalk(root.FS(), p.name, func(name string, _ fs.DirEntry) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() {
				return nil //nolint:nilerr // passed over, as above
			}
			if len(found) == maxMatches {
				return fmt.Errorf("the pattern %q is met by more than %d files", pattern, maxMatches)
			}
			found = append(found, place{p.folder, name})
			return nil
		}, doublestar.WithNoHidden())
	})
	slices.SortFunc(found, func(a, b place) int { return strings.Compare(a.name, b.name) })
	return found, err
}

// write makes the file what r gives, or adds it to its end. The file has at most most bytes then. When it fails, the file is as
// it was.
func (p place) write(r io.Reader, add bool, most int64) error {
	return p.in(func(root *os.Root) error {
		info, err := root.Stat(p.name)
		there := err == nil
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case there && !info.Mode().IsRegular():
			return errNotRegular
		}
		if add {
			return appendTo(root, p.name, r, most)
		}
		// A link within the folder stays, and what it leads to is replaced where it is.
		if link, err := root.Lstat(p.name); err == nil && link.Mode()&fs.ModeSymlink != 0 {
			file, err := root.OpenFile(p.name, os.O_WRONLY|os.O_TRUNC, 0)
			if err != nil {
				return err
			}
			return errors.Join(copyUpTo(file, r, most), file.Close())
		}
		mode := fs.FileMode(0o644)
		if there {
			// A file that this process may not write is not replaced behind its owner's back.
			file, err := root.OpenFile(p.name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				return err
			}
			_ = file.Close()
			mode = info.Mode().Perm()
		}
		beside := path.Join(path.Dir(p.name), ".reprise-"+uuid.NewString())
		file, err := root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		err = copyUpTo(file, r, most)
		if there && err == nil {
			err = file.Chmod(mode) // what the umask took away
		}
		if err = errors.Join(err, file.Close()); err == nil {
			err = root.Rename(beside, p.name)
		}
		if err != nil {
			_ = root.Remove(beside)
		}
		return err
	})
}

func appendTo(root *os.Root, name string, r io.Reader, most int64) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil {
		if err = copyUpTo(file, r, most-info.Size()); err != nil {
			err = errors.Join(err, file.Truncate(info.Size()))
		}
	}
	return errors.Join(err, file.Close())
}

func copyUpTo(w io.Writer, r io.Reader, most int64) error {
	n, err := io.Copy(w, io.LimitReader(r, max(most, 0)+1))
	if err == nil && n > most {
		return node.ErrFileTooLarge
	}
	return err
}
