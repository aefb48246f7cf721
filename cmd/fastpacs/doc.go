// Command fastpacs makes an image archive (PACS) fast over long, lossy or busy
// links. `fastpacs serve` stands beside the PACS as a reverse proxy for
// DICOMweb and sends over HTTP/3 with the improved FAST congestion controller.
//
// It is configured by FASTPACS_ environment variables only; `fastpacs serve
// --help` lists them. Exit status: 0 done, 1 failed while running, 2 wrong usage
// or configuration.
package main
