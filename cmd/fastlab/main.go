// Command fastlab is the laboratory of fastpacs: it runs the product beside a
// real PACS, over emulated links and through named scenarios, and says what came
// of it. `fastlab help` lists its subcommands.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }
