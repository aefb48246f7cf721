package main

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"fastpacs/proxy"
)

// prefix begins the name of every variable.
const prefix = "FASTPACS_"

// load reads the configuration from environ ("NAME=value" strings), over the
// defaults. An empty value stands for the default. The error joins all that is
// wrong, one line each; each names the variable, its value and what is allowed.
func load(environ []string) (config, error) {
	values := make(map[string]string)
	for _, assignment := range environ {
		if name, value, ok := strings.Cut(assignment, "="); ok && strings.HasPrefix(name, prefix) {
			values[name] = value
		}
	}
	c := defaults()
	// What cannot be parsed keeps its default, so that the rest can be validated.
	wrong := slices.Concat(unknown(values), parse(&c, values), blame(c.proxy().Validate(), values))
	// One variable may stand for several settings.
	wrong = slices.CompactFunc(wrong, func(a, b error) bool { return a.Error() == b.Error() })
	return c, errors.Join(wrong...)
}

// unknown refuses the variables that mean nothing to us.
func unknown(values map[string]string) []error {
	var names []string
	for v := range allVariables() {
		names = append(names, v.name)
	}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(names, name) {
			wrong = append(wrong, fmt.Errorf("%s is not a variable of fastpacs%s", name, suggest(name, names)))
		}
	}
	return wrong
}

// parse sets the fields of c from values.
func parse(c *config, values map[string]string) []error {
	err := env.ParseWithOptions(c, env.Options{Environment: values})
	if err == nil {
		return nil
	}
	all, ok := errors.AsType[env.AggregateError](err)
	if !ok {
		return []error{err}
	}
	var wrong []error
	for _, err := range all.Errors {
		if bad, ok := errors.AsType[env.ParseError](err); ok {
			field, _ := reflect.TypeFor[config]().FieldByName(bad.Name)
			v, _ := find(func(v variable) bool { return v.name == field.Tag.Get("env") })
			err = v.refuse(values)
		}
		wrong = append(wrong, err)
	}
	return wrong
}

// settingError is how the packages begin the message about a setting, when they
// have no *proxy.FieldError: "package: Field is ...".
var settingError = regexp.MustCompile(`^(\w+): (\w+) is `)

// blame turns the packages' errors about settings into errors about the
// variables that the settings come from.
func blame(err error, values map[string]string) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var wrong []error
		for _, err := range joined.Unwrap() {
			wrong = append(wrong, blame(err, values)...)
		}
		return wrong
	}
	setting := ""
	if bad, ok := errors.AsType[*proxy.FieldError](err); ok {
		setting, _, _ = strings.Cut(bad.Field, " ") // "CertFile and KeyFile"
	} else if m := settingError.FindStringSubmatch(err.Error()); m != nil {
		setting = m[1] + "." + m[2]
	}
	if v, ok := find(func(v variable) bool { return slices.Contains(v.sets, setting) }); ok {
		err = v.refuse(values)
	}
	return []error{err}
}

// refuse is the error for a variable that has a wrong value, or that must be set
// and is not.
func (v variable) refuse(values map[string]string) error {
	value := values[v.name]
	if value == "" {
		return fmt.Errorf("%s is not set: must be %s", v.name, v.rule())
	}
	if u, err := url.Parse(value); err == nil && u.User != nil {
		value = u.Redacted()
	}
	return fmt.Errorf("%s=%q: must be %s", v.name, value, v.rule())
}

// texts writes every field of c as its variable would hold it.
func texts(c config) map[string]string {
	all := make(map[string]string)
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		all[v.Type().Field(i).Tag.Get("env")] = text(v.Field(i))
	}
	return all
}

func text(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case time.Duration:
		s := value.String() // 5m0s, 1h0m0s
		if strings.HasSuffix(s, "m0s") {
			s = strings.TrimSuffix(s, "0s")
		}
		if strings.HasSuffix(s, "h0m") {
			s = strings.TrimSuffix(s, "0m")
		}
		return s
	case fmt.Stringer:
		return value.String()
	}
	if v.Kind() == reflect.Slice {
		items := make([]string, v.Len())
		for i := range items {
			items[i] = text(v.Index(i))
		}
		return strings.Join(items, ",")
	}
	return fmt.Sprint(v.Interface())
}
