// Package javascript is bad.
package javascript

import _ "github.com/reprise-engine/reprise/pkg/workflow"
