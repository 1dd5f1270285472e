// Package config reads a service's settings: every field is an environment
// variable and a flag, the flag wins, and the help text lists both.
package config

import (
	"fmt"
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
// strings; `env:"-"` leaves one out. Parse the flags afterwards.
func Bind(flags *pflag.FlagSet, cfg any) error {
	if err := env.Parse(cfg); err != nil {
		return fmt.Errorf("read environment: %w", err)
	}
	v := reflect.ValueOf(cfg).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		variable := field.Tag.Get("env")
		if variable == "-" {
			continue
		}
		if variable == "" {
			return fmt.Errorf("config: field %s.%s has no env tag", v.Type().Name(), field.Name)
		}
		name := FlagName(variable)
		help := fmt.Sprintf("%s (%s)", field.Tag.Get("help"), variable)
		if err := fromFile(variable, v.Field(i).Addr().Interface()); err != nil {
			return err
		}
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
		if isSecret(variable) {
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

// FlagName is the flag of an environment variable.
func FlagName(variable string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, "REPRISE_"), "_", "-"))
}
