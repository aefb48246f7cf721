package orthanc

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// installed returns the installed Orthanc, or skips; REQUIRE_PARTS=1 forbids
// skipping.
func installed(t *testing.T) Installation {
	t.Helper()
	in, err := Find()
	if err != nil {
		if os.Getenv("REQUIRE_PARTS") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return in
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	binary, plugin := filepath.Join(dir, "Orthanc"), filepath.Join(dir, "libOrthancDicomWeb.so.1.7")
	for _, f := range []string{binary, plugin} {
		if err := os.WriteFile(f, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	inPath := func(string) (string, error) { return "/somewhere/Orthanc", nil }
	notInPath := func(string) (string, error) { return "", errors.New("no") }
	plugins := []string{filepath.Join(dir, "missing*"), filepath.Join(dir, "libOrthancDicomWeb.so*")}
	for _, c := range []struct {
		name     string
		look     func(string) (string, error)
		binaries []string
		plugins  []string
		want     Installation
		missing  string
	}{
		{"in PATH", inPath, nil, plugins, Installation{"/somewhere/Orthanc", plugin}, ""},
		{"in a usual place", notInPath, []string{binary}, plugins, Installation{binary, plugin}, ""},
		{"no server", notInPath, []string{dir}, plugins, Installation{}, "the Orthanc server is not installed"},
		{"no plugin", inPath, nil, nil, Installation{}, "DICOMweb plugin is not installed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, err := find(c.look, c.binaries, c.plugins)
			if in != c.want {
				t.Errorf("found %+v, want %+v", in, c.want)
			}
			if c.missing == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrNotInstalled) || !strings.Contains(err.Error(), c.missing) || !strings.Contains(err.Error(), InstallCommand) {
				t.Errorf("error %v: want %q and the command", err, c.missing)
			}
		})
	}
}

func TestIsDebian(t *testing.T) {
	for _, c := range []struct {
		release string
		want    bool
	}{
		{"PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n", true},
		{"ID=ubuntu\nID_LIKE=debian\n", true},
		{"ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", true},
		{"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", false},
		{"ID=fedora\nHOME_URL=https://debian\n", false},
		{"", false},
	} {
		if got := isDebian(c.release); got != c.want {
			t.Errorf("isDebian(%q) = %v", c.release, got)
		}
	}
}

func TestForbidServiceStart(t *testing.T) {
	helper := filepath.Join(t.TempDir(), "policy-rc.d")
	allow, err := forbidServiceStart(t.Context(), helper)
	if err != nil {
		t.Fatal(err)
	}
	for service, denied := range map[string]bool{"orthanc": true, "orthanc.service": true, "ssh": false} {
		err := run(t.Context(), func(string) {}, helper, service, "start")
		if got := err != nil; got != denied {
			t.Errorf("start of %s: %v, want denied %v", service, err, denied)
		}
	}
	allow()
	if _, err := os.Stat(helper); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the policy is still there: %v", err)
	}

	// A policy of the administrator's is obeyed and left alone.
	for script, ok := range map[string]bool{"#!/bin/sh\nexit 101\n": true, "#!/bin/sh\nexit 0\n": false} {
		if err := os.WriteFile(helper, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		allow, err := forbidServiceStart(t.Context(), helper)
		if got := err == nil; got != ok {
			t.Errorf("policy %q: error %v", script, err)
		}
		if err == nil {
			allow()
		}
		if b, err := os.ReadFile(helper); err != nil || string(b) != script {
			t.Errorf("policy %q became %q, %v", script, b, err)
		}
	}
}

func TestRunReports(t *testing.T) {
	var lines []string
	err := run(t.Context(), func(l string) { lines = append(lines, strings.TrimSpace(l)) }, "sh", "-c", "echo one; echo; echo two >&2; exit 3")
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "two") {
		t.Errorf("error %v: want the status and the output", err)
	}
	if len(lines) != 2 || lines[0] != "one" || lines[1] != "two" {
		t.Errorf("progress %q", lines)
	}
}

func TestValidate(t *testing.T) {
	in := Installation{"a", "b"}
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, "Installation is empty"},
		{Config{Installation: in, ReadyTimeout: -1}, "ReadyTimeout is -1ns: must be"},
		{Config{Installation: in, StopTimeout: time.Hour}, "StopTimeout is 1h0m0s: must be"},
		{Config{Installation: in, Modalities: map[string]net.TCPAddr{"SEVENTEEN_LETTERS": {}}}, "SEVENTEEN_LETTERS"},
	} {
		if _, err := Start(t.Context(), c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func TestStartStop(t *testing.T) {
	s, err := Start(t.Context(), Config{
		Installation: installed(t),
		Modalities:   map[string]net.TCPAddr{"DEST": {IP: net.IPv4(127, 0, 0, 1), Port: 104}},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Get(s.URL() + DICOMwebPath + "/studies")
	if err != nil {
		t.Fatal(err)
	}
	var studies []any
	err = json.NewDecoder(resp.Body).Decode(&studies)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || err != nil || len(studies) != 0 {
		t.Errorf("QIDO-RS on an empty archive: %s, %v, %v", resp.Status, studies, err)
	}
	conn, err := net.DialTimeout("tcp", s.DICOMAddr(), 5*time.Second)
	if err != nil {
		t.Errorf("the DICOM port: %v", err)
	} else {
		conn.Close()
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.LogFile()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stop left the directory: %v", err)
	}
	if err := syscall.Kill(s.PID(), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", s.PID(), err)
	}
}

func TestStopAfterCrash(t *testing.T) {
	s, err := Start(t.Context(), Config{Installation: installed(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Exited()
	if err := s.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "signal: killed") || !strings.Contains(err.Error(), "the log ends with") {
		t.Errorf("Stop after a crash: %v", err)
	}
}

// script makes an executable that stands in for Orthanc.
func script(t *testing.T, body string) Installation {
	t.Helper()
	name := filepath.Join(t.TempDir(), "Orthanc")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return Installation{Binary: name, Plugin: name}
}

func TestStartFails(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"ends at once", "echo cannot open the database; exit 1\n", []string{"exit status 1", "cannot open the database"}},
		{"never answers", "echo thinking; exec sleep 60\n", []string{"not ready after 300ms", "thinking"}},
		{"ignores SIGTERM", "trap '' TERM\necho stubborn\nwhile :; do sleep 0.05; done\n", []string{"not ready after 300ms", "killed process", "stubborn"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Start(t.Context(), Config{Installation: script(t, c.body), ReadyTimeout: 300 * time.Millisecond, StopTimeout: 300 * time.Millisecond})
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Config{Installation: script(t, "exec sleep 60\n")}); !errors.Is(err, context.Canceled) {
		t.Errorf("start under a cancelled context: %v", err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) != 0 {
		t.Errorf("failed starts left %v, %v", left, err)
	}
}
