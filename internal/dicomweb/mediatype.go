package dicomweb

import (
	"fmt"
	"strings"
)

// parseMediaType splits a Content-Type into its lower-case type and its
// parameters. It takes what package mime refuses and PACS send: a value with a
// slash that is not quoted, as in multipart/related; type=application/dicom.
func parseMediaType(s string) (mediaType string, params map[string]string, err error) {
	head, rest, _ := strings.Cut(s, ";")
	mediaType = strings.ToLower(strings.TrimSpace(head))
	if kind, sub, ok := strings.Cut(mediaType, "/"); !ok || kind == "" || sub == "" {
		return "", nil, fmt.Errorf("Content-Type %q is not a media type", s)
	}
	params = map[string]string{}
	for rest != "" {
		var name, value string
		name, rest, _ = strings.Cut(rest, "=")
		rest = strings.TrimLeft(rest, " \t")
		if strings.HasPrefix(rest, `"`) {
			value, rest, err = unquote(rest)
			if err != nil {
				return "", nil, fmt.Errorf("Content-Type %q: %w", s, err)
			}
			_, rest, _ = strings.Cut(rest, ";")
		} else {
			value, rest, _ = strings.Cut(rest, ";")
			value = strings.TrimSpace(value)
		}
		params[strings.ToLower(strings.Trim(name, "; \t"))] = value
	}
	return mediaType, params, nil
}

// unquote takes a quoted string (RFC 9110 section 5.6.4) off the front of s.
func unquote(s string) (value, rest string, err error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], nil
		case '\\':
			if i++; i == len(s) {
				return "", "", fmt.Errorf("a quoted value does not end")
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", fmt.Errorf("a quoted value does not end")
}
