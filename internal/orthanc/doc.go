// Package orthanc finds, installs and runs the Orthanc DICOM server with its
// DICOMweb plugin as a child process on loopback: the real archive behind the
// proxy in tests, benchmarks and demonstrations.
//
//	Find ──missing──> Install (root, Debian or Ubuntu) ──> Find
//	  └──> Start: temporary directory, free ports, GET /system answers ──> Stop
//
// Orthanc keeps its stock behaviour toward HTTP clients, above all that it
// closes a connection one second after the last request.
//
// It never starts, stops or configures a system-wide Orthanc service, and never
// touches that service's data.
package orthanc
