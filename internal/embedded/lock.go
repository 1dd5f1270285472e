package embedded

import (
	"fmt"
	"os"
	"path/filepath"
)

// lockDir creates dir and takes an exclusive lock named after the server that
// uses it. The operating system drops the lock with the process, however it
// ends, so there is no stale lock to clean up.
func lockDir(dir, server string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create %s directory: %w", server, err)
	}
	path := filepath.Join(dir, server+".lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s directory: %w", server, err)
	}
	if err := flock(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%w: %s (%s); stop the other process or choose another directory", ErrDirInUse, dir, server)
	}
	return func() { _ = file.Close() }, nil
}
