// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Confirmed says whether the run may begin: YES=1 is set, or somebody at a terminal types
// yes. Where nobody can be asked, or ctx ends (Ctrl-C) before the answer, the answer is no.
func (s Settings) Confirmed(ctx context.Context, in *os.File, out io.Writer) bool {
	if s.Yes {
		return true
	}
	if !term.IsTerminal(int(in.Fd())) {
		_, _ = fmt.Fprintf(out, "Nobody can be asked here: set %s=1 to go on.\n", EnvYes)
		return false
	}
	return typedYes(ctx, in, out)
}

func typedYes(ctx context.Context, in io.Reader, out io.Writer) bool {
	_, _ = fmt.Fprint(out, "Go on? Type yes: ")
	answers := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(in).ReadString('\n')
		answers <- answer
	}()
	select {
	case answer := <-answers:
		return strings.TrimSpace(answer) == "yes"
	case <-ctx.Done():
		_, _ = fmt.Fprintln(out)
		return false
	}
}
