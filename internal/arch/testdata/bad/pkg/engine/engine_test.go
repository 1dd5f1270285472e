package engine

import (
	"os"
	"testing"
	"time"
)

func TestClock(t *testing.T) { t.Log(time.Now(), os.Args) }
