//go:build !unix

package chaos

import (
	"errors"
	"os"
)

// canPause says whether processes can be stopped for a while.
const canPause = false

func stopOrContinue(*os.Process, bool) error { return errors.ErrUnsupported }
