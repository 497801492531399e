// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/internal/pages"
)

// The page that says where to change what names files that exist, and what they declare.
func TestTheMapOfThePackageIsRight(t *testing.T) {
	page, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(strings.ReplaceAll(string(page), "\n//", "\n")), " ")
	for _, name := range regexp.MustCompile(`[\w./-]+\.(?:go|md|yaml)\b`).FindAllString(text, -1) {
		if _, err := os.Stat(resolve(name)); err != nil {
			t.Errorf("doc.go names %s: %v", name, err)
		}
	}
	claims := regexp.MustCompile(`((?:\w+, )*\w+) in ([\w./-]+\.go)`).FindAllStringSubmatch(text, -1)
	if len(claims) < 20 {
		t.Fatalf("%d claims are found in doc.go", len(claims))
	}
	for _, claim := range claims {
		declared := declaredIn(t, resolve(claim[2]))
		for _, name := range strings.Split(claim[1], ", ") {
			if !declared[name] {
				t.Errorf("doc.go says that %s is in %s, and it is not", name, claim[2])
			}
		}
	}
}

// The pages have the numbers of the code: each of these sentences stands in its page, and nowhere with another number.
func TestThePagesHaveTheNumbersOfTheCode(t *testing.T) {
	pauses := "1"
	for i := range maxUnseenDoublings {
		pauses += fmt.Sprintf(", %d", 2<<i)
	}
	sameAnswer := fmt.Sprintf("gets the same answer for %v minute", exhaustedFor.Minutes())
	pages.HaveNumbers(t, map[string][]string{
		"README.md": {
			fmt.Sprintf("The first read comes %v to %v s after its POST, %v to %v s after its DELETE;", firstPoll.Seconds(),
				(firstPoll + minPoll).Seconds(), firstDeletionPoll.Seconds(), (firstDeletionPoll + minDeletionPoll).Seconds()),
			fmt.Sprintf(
				"the next ones are 1/%d of the time since then apart, %v to %v s after a POST, %v to %v s after a DELETE.",
				pollShare, minPoll.Seconds(), maxPoll.Seconds(), minDeletionPoll.Seconds(), maxPoll.Seconds()),
			fmt.Sprintf("%v s apart if the driver's DELETE was accepted or the server was last seen DELETING, else %v s.",
				minExpectedGap.Seconds(), minGap.Seconds()),
			fmt.Sprintf("reads over %v s that do not show the server", minExpectedGap.Seconds()),
			fmt.Sprintf("several reads in a row, over %v s or %v s,", minExpectedGap.Seconds(), minGap.Seconds()),
			fmt.Sprintf("A read older than %v minute", maxProofAge.Minutes()),
			fmt.Sprintf("needs two, at least %v s and at most %v minute", minGap.Seconds(), maxProofAge.Minutes()),
			fmt.Sprintf("(403: after %v s), and every %v minutes while a server stays DELETING", refusedRepeat.Seconds(),
				deletionRepeat.Minutes()),
			fmt.Sprintf("up to %d read so at a time, and the next list comes after 1, 2, 4 … %v s", maxSingles,
				maxListBackoff.Seconds()),
			fmt.Sprintf("ends after %v s with its retries", readTimeout.Seconds()),
			fmt.Sprintf(
				"have failed for %v minutes, because they are too large (413, 504, more than 16 MiB, no answer within %v s)",
				tooLargeFor.Minutes(), readTimeout.Seconds()),
			fmt.Sprintf("(decisions.md#the-first-30-s-of-failures-are-waited-out) for %v s", refusedFor.Seconds()),
			fmt.Sprintf("loop every %v to %v s, until they must show it", minPoll.Seconds(), maxPoll.Seconds()),
			fmt.Sprintf("loop every %v to %v s, until a server shows", minPoll.Seconds(), maxPoll.Seconds()),
			fmt.Sprintf("loop after %v to %v s, then every %v to %v s, while it is CREATING", firstPoll.Seconds(),
				(firstPoll + minPoll).Seconds(), minPoll.Seconds(), maxPoll.Seconds()),
			fmt.Sprintf("loop after %v to %v s, then every %v to %v s, until all are proved gone", firstDeletionPoll.Seconds(),
				(firstDeletionPoll + minDeletionPoll).Seconds(), minDeletionPoll.Seconds(), maxPoll.Seconds()),
			fmt.Sprintf("had no effect for %v s, or has not finished after %v min", deletionTimeout.Seconds(),
				deletionRepeat.Minutes()),
			fmt.Sprintf("reported after %v s", refusedFor.Seconds()),
			fmt.Sprintf("the class gets no POST for %v minute", exhaustedFor.Minutes()),
			fmt.Sprintf("(`--stackit-settle`, %v s)", DefaultSettle.Seconds()),
			fmt.Sprintf("clocks of API server and sidecar differ by less than %v s", clockSkew.Seconds()),
			fmt.Sprintf("became leader, or less than %v s after.", clockSkew.Seconds()),
			fmt.Sprintf("ends no deletion, until %v s after it became leader", DefaultSettle.Seconds()),
		},
		"decisions.md": {
			fmt.Sprintf("for the settle time of %v s", DefaultSettle.Seconds()),
			fmt.Sprintf("waits at most %v s until the server is DELETING", discardTimeout.Seconds()),
			"wait " + pauses + " minutes, until",
			fmt.Sprintf("The first read comes %v to %v s after the POST;", firstPoll.Seconds(), (firstPoll + minPoll).Seconds()),
			fmt.Sprintf("a sixth of the time since, from %v to %v s.", minPoll.Seconds(), maxPoll.Seconds()),
			fmt.Sprintf("up to %v s until a boot is noticed", maxPoll.Seconds()),
			fmt.Sprintf("%v s apart after our accepted DELETE, else %v s apart", minExpectedGap.Seconds(),
				minGap.Seconds()),
			fmt.Sprintf("are given up after %v minutes", tooLargeFor.Minutes()),
			fmt.Sprintf("The first %v s of failures are waited out", refusedFor.Seconds()),
		},
		"apis/README.md": {sameAnswer},
		"../../cmd/machine-controller/README.md": {
			fmt.Sprintf("at least %v minute and at most `--stackit-creation-wait`", MinCreationWait.Minutes()),
			fmt.Sprintf("`--machine-creation-timeout` (%v minutes by default)", defaultCreationTimeout.Minutes()),
		},
		"../../cmd/mcm-stackit/README.md": {sameAnswer},
		"../../kubernetes/runbooks.md": {
			sameAnswer,
			fmt.Sprintf("for up to %v minutes (`--stackit-creation-wait`)", DefaultCreationWait.Minutes()),
			fmt.Sprintf("take longer to boot than a call waits (%v minutes,", DefaultCreationWait.Minutes()),
			fmt.Sprintf("waits %v s before it creates anything", DefaultSettle.Seconds()),
			fmt.Sprintf("costs each Machine in creation %v s", DefaultSettle.Seconds()),
			fmt.Sprintf("was created within %v s of it", clockSkew.Seconds()),
		},
		"../../kubernetes/upgrade.md": {
			fmt.Sprintf("has led for `--stackit-settle` (%v s)", DefaultSettle.Seconds()),
			fmt.Sprintf("`ResourceMissing`, InvalidArgument, after %v s", refusedFor.Seconds()),
		},
	})
}

// resolve returns the path of a file that a page names by its place in the package or the repository.
func resolve(name string) string {
	if _, err := os.Stat(name); err == nil {
		return name
	}
	return filepath.Join("..", "..", name)
}

// declaredIn returns the names that a file declares at its top level, methods included.
func declaredIn(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	for _, decl := range file.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok {
			declared[function.Name.Name] = true
			continue
		}
		for _, spec := range decl.(*ast.GenDecl).Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				declared[spec.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					declared[name.Name] = true
				}
			}
		}
	}
	return declared
}
