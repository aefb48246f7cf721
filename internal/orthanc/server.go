package orthanc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// AETitle is the application entity title that a started Orthanc answers to.
const AETitle = "ORTHANC"

// Config says how to run Orthanc.
type Config struct {
	// Installation is what Find or Install returned.
	Installation Installation
	// ReadyTimeout bounds the wait until Orthanc answers; 0 means 20 s.
	ReadyTimeout time.Duration
	// StopTimeout bounds the wait for a clean end before Orthanc is killed; 0
	// means 10 s.
	StopTimeout time.Duration
	// Modalities are the application entities that Orthanc may send to
	// (C-MOVE destinations), by AE title.
	Modalities map[string]net.TCPAddr
}

// Validate reports the first field that cannot be used.
func (c Config) Validate() error {
	if c.Installation.Binary == "" || c.Installation.Plugin == "" {
		return errors.New("orthanc: Installation is empty: must be what Find or Install returned")
	}
	if c.ReadyTimeout < 0 || c.ReadyTimeout > 10*time.Minute {
		return fmt.Errorf("orthanc: ReadyTimeout is %v: must be 0 to 10m", c.ReadyTimeout)
	}
	if c.StopTimeout < 0 || c.StopTimeout > 10*time.Minute {
		return fmt.Errorf("orthanc: StopTimeout is %v: must be 0 to 10m", c.StopTimeout)
	}
	for ae := range c.Modalities {
		if ae == "" || len(ae) > 16 {
			return fmt.Errorf("orthanc: Modalities has AE title %q: must be 1 to 16 characters", ae)
		}
	}
	return nil
}

// Server is a running Orthanc.
type Server struct {
	dir      string
	httpAddr string
	dicom    string
	cmd      *exec.Cmd
	stopWait time.Duration
	exited   chan struct{} // closed when the process is gone and err is set
	err      error
}

// errExited reports that Orthanc ended before it answered.
var errExited = errors.New("the server ended by itself")

// Start runs Orthanc with an empty archive in a temporary directory and waits
// until it answers GET /system. The context bounds the start only; end the
// server with Stop.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	var err error
	// Between choosing a free port and Orthanc listening on it somebody else may
	// take it.
	for range 3 {
		var s *Server
		if s, err = start(ctx, cfg); err == nil {
			return s, nil
		}
		if !errors.Is(err, errExited) {
			break
		}
	}
	return nil, fmt.Errorf("orthanc: starting %s: %w", cfg.Installation.Binary, err)
}

func start(ctx context.Context, cfg Config) (_ *Server, err error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "fastpacs-orthanc-")
	if err != nil {
		return nil, err
	}
	s := &Server{
		dir:      dir,
		httpAddr: fmt.Sprintf("127.0.0.1:%d", ports[0]),
		dicom:    fmt.Sprintf("127.0.0.1:%d", ports[1]),
		exited:   make(chan struct{}),
		stopWait: cfg.StopTimeout,
	}
	if s.stopWait == 0 {
		s.stopWait = 10 * time.Second
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w%s", err, s.logTail())
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	conf, err := json.MarshalIndent(settings(cfg, dir, ports[0], ports[1]), "", "  ")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "orthanc.json")
	if err := os.WriteFile(file, conf, 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(s.LogFile())
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own copy
	s.cmd = exec.Command(cfg.Installation.Binary, file)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	// Ctrl-C at the terminal is for the parent, which stops Orthanc in its turn.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.exited)
	}()
	timeout := cfg.ReadyTimeout
	if timeout == 0 {
		timeout = 20 * time.Second
	}
	if err := s.awaitReady(ctx, timeout); err != nil {
		return nil, errors.Join(err, s.end(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// settings is Orthanc's configuration file. What is not in it is stock.
func settings(cfg Config, dir string, httpPort, dicomPort int) map[string]any {
	modalities := map[string]any{}
	for ae, addr := range cfg.Modalities {
		modalities[ae] = []any{ae, addr.IP.String(), addr.Port}
	}
	return map[string]any{
		"Name":                    "fastpacs laboratory",
		"StorageDirectory":        filepath.Join(dir, "archive"),
		"IndexDirectory":          filepath.Join(dir, "archive"),
		"TemporaryDirectory":      dir,
		"Plugins":                 []string{cfg.Installation.Plugin},
		"HttpServerEnabled":       true,
		"HttpPort":                httpPort,
		"RemoteAccessAllowed":     false, // loopback only
		"AuthenticationEnabled":   false,
		"HttpCompressionEnabled":  false,
		"OverwriteInstances":      true,
		"UnknownSopClassAccepted": true,
		"DicomServerEnabled":      true,
		"DicomAet":                AETitle,
		"DicomPort":               dicomPort,
		"DicomCheckCalledAet":     false,
		"DicomAlwaysAllowEcho":    true,
		"DicomAlwaysAllowStore":   true,
		"DicomAlwaysAllowFind":    true,
		"DicomAlwaysAllowGet":     true,
		"DicomAlwaysAllowMove":    true,
		"DicomModalities":         modalities,
		"DicomWeb": map[string]any{
			"Enable":     true,
			"Root":       "/dicom-web/",
			"EnableWado": true,
			"WadoRoot":   "/wado",
			"Ssl":        false,
		},
	}
}

// URL is the base URL of Orthanc's HTTP server, without a slash at its end.
func (s *Server) URL() string { return "http://" + s.httpAddr }

// DICOMwebPath is the path of the DICOMweb service below URL.
const DICOMwebPath = "/dicom-web"

// DICOMAddr is the host:port of the DIMSE listener.
func (s *Server) DICOMAddr() string { return s.dicom }

// PID is Orthanc's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// LogFile is where Orthanc's output goes; Stop removes it.
func (s *Server) LogFile() string { return filepath.Join(s.dir, "orthanc.log") }

// Exited is closed when the process has ended, asked to or not.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Stop ends Orthanc, waits for it and removes its archive. An Orthanc that had
// ended before is an error, which shows the end of its log.
func (s *Server) Stop(ctx context.Context) error {
	select {
	case <-s.exited:
		err := fmt.Errorf("orthanc: %w: %w%s", errExited, errorOr(s.err, "status 0"), s.logTail())
		return errors.Join(err, os.RemoveAll(s.dir))
	default:
	}
	err := s.end(ctx)
	return errors.Join(err, os.RemoveAll(s.dir))
}

// end interrupts the process, or kills it when that takes too long, and waits.
func (s *Server) end(ctx context.Context) error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // fails only if it is gone
	timer := time.NewTimer(s.stopWait)
	defer timer.Stop()
	select {
	case <-s.exited:
		return nil
	case <-ctx.Done():
	case <-timer.C:
	}
	_ = s.cmd.Process.Kill()
	<-s.exited
	return fmt.Errorf("orthanc: killed process %d, which did not end when asked to", s.PID())
}

// awaitReady polls GET /system; HEAD answers 404.
func (s *Server) awaitReady(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		err := getSystem(ctx, client, s.URL()+"/system")
		if err == nil {
			// Another server may have taken the port: then ours has ended.
			select {
			case <-s.exited:
				return errExited
			default:
				return nil
			}
		}
		select {
		case <-s.exited:
			return fmt.Errorf("%w: %w", errExited, errorOr(s.err, "status 0"))
		case <-ctx.Done():
			return fmt.Errorf("not ready after %v: %w", timeout, err)
		case <-tick.C:
		}
	}
}

func getSystem(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	return nil
}

// freePorts returns TCP ports of loopback on which nobody listens.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		// Held until all are chosen, so that they differ.
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("choosing a port: %w", err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// logTail returns the end of the log, for an error message.
func (s *Server) logTail() string {
	const limit = 2048
	f, err := os.Open(s.LogFile())
	if err != nil {
		return ""
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > limit {
		if _, err := f.Seek(-limit, io.SeekEnd); err != nil {
			return ""
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return ""
	}
	return "; the log ends with:\n" + strings.TrimSpace(string(b))
}

func errorOr(err error, text string) error {
	if err != nil {
		return err
	}
	return errors.New(text)
}
