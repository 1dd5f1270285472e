package config

import (
	"fmt"
	"os"
	"strings"
)

// isSecret reports whether a setting is or may hold a secret: a key, or a URL with a password. The
// help does not show such a value of the environment.
func isSecret(variable string) bool {
	return strings.HasSuffix(variable, "_URL") || strings.HasSuffix(variable, "_KEY")
}

// fromFile sets a text setting that may hold a secret from the file that the variable with
// _FILE after its name gives, as container systems hand secrets over. Space around the text is
// not part of it.
func fromFile(variable string, field any) error {
	text, ok := field.(*string)
	file := os.Getenv(variable + "_FILE")
	if !ok || file == "" || !isSecret(variable) {
		return nil
	}
	if os.Getenv(variable) != "" {
		return fmt.Errorf("%s and %s_FILE are both set; use one", variable, variable)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read %s_FILE: %w", variable, err)
	}
	if *text = strings.TrimSpace(string(data)); *text == "" {
		return fmt.Errorf("%s_FILE: %s is empty", variable, file)
	}
	return nil
}
