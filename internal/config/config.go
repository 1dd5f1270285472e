// Package config reads a service's settings: every field is an environment
// variable and a flag, the flag wins, and the help text lists both.
package config

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/pflag"
)

// Bind fills the struct that cfg points to from the environment and adds a
// flag for every field. The fields carry the tags `env` (the variable),
// `envDefault` and `help`; the flag is the variable without "REPRISE_", in lower
// case with dashes. Fields are strings, integers, booleans, durations or lists of
// strings, or structs of such that are embedded; `env:"-"` leaves one out. What may hold a
// secret (a URL or a key) is also read from the file that the variable with "_FILE" added
// names. Parse the flags afterwards.
func Bind(flags *pflag.FlagSet, cfg any) error {
	environment := env.ToMap(os.Environ())
	v := reflect.ValueOf(cfg).Elem()
	if err := readSecretFiles(v.Type(), environment); err != nil {
		return err
	}
	if err := env.ParseWithOptions(cfg, env.Options{Environment: environment}); err != nil {
		return fmt.Errorf("read environment: %w", err)
	}
	return bind(flags, v)
}

func bind(flags *pflag.FlagSet, v reflect.Value) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			if err := bind(flags, v.Field(i)); err != nil {
				return err
			}
			continue
		}
		variable := field.Tag.Get("env")
		if variable == "-" {
			continue
		}
		if variable == "" {
			return fmt.Errorf("config: field %s.%s has no env tag", v.Type().Name(), field.Name)
		}
		name := FlagName(variable)
		help := fmt.Sprintf("%s (%s)", field.Tag.Get("help"), variable)
		switch p := v.Field(i).Addr().Interface().(type) {
		case *string:
			flags.StringVar(p, name, *p, help)
		case *int:
			flags.IntVar(p, name, *p, help)
		case *bool:
			flags.BoolVar(p, name, *p, help)
		case *time.Duration:
			flags.DurationVar(p, name, *p, help)
		case *[]string:
			flags.StringSliceVar(p, name, *p, help)
		default:
			return fmt.Errorf("config: field %s.%s has type %T, which no flag can have", v.Type().Name(), field.Name, p)
		}
		// A URL in the environment may hold a password, and a key is one: the help
		// must not show it.
		if secret(variable) {
			flags.Lookup(name).DefValue = field.Tag.Get("envDefault")
		}
	}
	return nil
}

// Default gives every field of the struct that cfg points to that is zero its `envDefault`, so
// that whoever fills settings by hand has the same ones. It does not read the environment.
func Default(cfg any) error {
	err := env.ParseWithOptions(cfg, env.Options{Environment: map[string]string{}, SetDefaultsForZeroValuesOnly: true})
	if err != nil {
		return fmt.Errorf("default settings: %w", err)
	}
	return nil
}

// secret reports whether a variable's value may be, or hold, a secret.
func secret(variable string) bool {
	return strings.HasSuffix(variable, "_URL") || strings.HasSuffix(variable, "_KEY")
}

// readSecretFiles puts what the files hold into the environment, as if it had been there.
func readSecretFiles(t reflect.Type, environment map[string]string) error {
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			if err := readSecretFiles(field.Type, environment); err != nil {
				return err
			}
			continue
		}
		variable := field.Tag.Get("env")
		if !secret(variable) {
			continue
		}
		value, err := Secret(variable, environment)
		if err != nil {
			return err
		}
		if value != "" {
			environment[variable] = value
		}
	}
	return nil
}

// Secret is the value of a variable, or what the file holds that the variable with
// "_FILE" added names, without the white space around it: secrets of containers are
// files. "" when neither is set; both at once are an error.
func Secret(variable string, environment map[string]string) (string, error) {
	value, path := environment[variable], environment[variable+"_FILE"]
	switch {
	case path == "":
		return value, nil
	case value != "":
		return "", fmt.Errorf("%s and %s_FILE are both set: remove one", variable, variable)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read %s_FILE: %w", variable, err)
	}
	if value = strings.TrimSpace(string(text)); value == "" {
		return "", fmt.Errorf("read %s_FILE: %s is empty", variable, path)
	}
	return value, nil
}

// FlagName is the flag of an environment variable.
func FlagName(variable string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, "REPRISE_"), "_", "-"))
}
