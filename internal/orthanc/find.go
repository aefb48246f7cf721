package orthanc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNotInstalled is wrapped by Find when a part of Orthanc is missing.
var ErrNotInstalled = errors.New("not installed")

// Installation says where the parts of Orthanc are.
type Installation struct {
	Binary string // the Orthanc executable
	Plugin string // the DICOMweb plugin, a shared library
}

// Where packages and source builds put the parts. The executable is looked for
// in PATH first; Debian's lies in /usr/sbin, which users may not have there.
var (
	binaryPlaces = []string{"/usr/sbin/Orthanc", "/usr/bin/Orthanc", "/usr/local/sbin/Orthanc", "/usr/local/bin/Orthanc"}
	pluginPlaces = []string{
		"/usr/share/orthanc/plugins/libOrthancDicomWeb.so*",
		"/usr/lib/orthanc/libOrthancDicomWeb.so*",
		"/usr/local/share/orthanc/plugins/libOrthancDicomWeb.so*",
		"/opt/homebrew/share/orthanc/plugins/libOrthancDicomWeb.*",
	}
)

// Find locates the installed Orthanc and its DICOMweb plugin. The error says
// how to install what is missing and wraps ErrNotInstalled.
func Find() (Installation, error) {
	return find(exec.LookPath, binaryPlaces, pluginPlaces)
}

func find(lookPath func(string) (string, error), binaries, plugins []string) (Installation, error) {
	var in Installation
	if p, err := lookPath("Orthanc"); err == nil {
		in.Binary = p
	} else {
		in.Binary = firstFile(binaries)
	}
	in.Plugin = firstFile(plugins)
	switch {
	case in.Binary == "":
		return Installation{}, fmt.Errorf("orthanc: the Orthanc server is %w; on Debian or Ubuntu run: %s", ErrNotInstalled, InstallCommand)
	case in.Plugin == "":
		return Installation{}, fmt.Errorf("orthanc: Orthanc's DICOMweb plugin is %w; on Debian or Ubuntu run: %s", ErrNotInstalled, InstallCommand)
	}
	return in, nil
}

// firstFile returns the first regular file that one of the patterns names.
func firstFile(patterns []string) string {
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil {
			continue // only a malformed pattern, and ours are constant
		}
		for _, name := range names {
			if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() {
				return name
			}
		}
	}
	return ""
}
