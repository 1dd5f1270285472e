package engine

import . "time"

var zero Duration
