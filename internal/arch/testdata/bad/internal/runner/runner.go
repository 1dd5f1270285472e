// Package runner is bad.
package runner

import _ "github.com/redis/go-redis/v9"
