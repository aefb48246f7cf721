package proxy

import "strings"

// What a request's target shows in logs. Queries hold patient names and numbers
// (PS3.18 8.3.4, Matching), so only the names of their parameters are shown;
// paths hold UIDs, which are, but a value may hide in a path too.

const (
	hidden          = "*"
	maxLoggedPath   = 512  // bytes
	maxLoggedQuery  = 256  // bytes of parameter names
	maxLoggedValues = 2048 // bytes of a whole query, where values are wanted
)

// redactPath returns an escaped path with everything from the first '=', ';' or
// escaped '?' of a segment hidden, cut to maxLoggedPath bytes.
func redactPath(escaped string) string {
	var b strings.Builder
	for i, segment := range strings.Split(cut(escaped, maxLoggedPath), "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		end := strings.IndexAny(segment, "=;")
		for _, mark := range []string{"%3d", "%3D", "%3b", "%3B", "%3f", "%3F"} {
			if j := strings.Index(segment, mark); j >= 0 && (end < 0 || j < end) {
				end = j
			}
		}
		if end < 0 {
			b.WriteString(segment)
			continue
		}
		b.WriteString(segment[:end] + hidden)
	}
	return b.String()
}

// queryNames returns the names of a raw query's parameters, in order, joined by
// commas: those that look like DICOM keywords, tags or plain parameters. Others,
// and anything without a '=', might be data and are hidden.
func queryNames(raw string) string {
	var b strings.Builder
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, _, ok := strings.Cut(pair, "=")
		if !ok || !plainName(name) {
			name = hidden
		}
		if b.Len()+len(name)+1 > maxLoggedQuery {
			b.WriteString(",...")
			break
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(name)
	}
	return b.String()
}

// plainName accepts names such as PatientName, 00100010, 00400275.00400007 and
// include-field.
func plainName(s string) bool {
	if len(s) == 0 || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "..."
}
