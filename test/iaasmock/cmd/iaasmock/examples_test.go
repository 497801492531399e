// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// example is one curl command as a shell reads it.
type example struct {
	method, url, body string
	header            http.Header
}

var exampleLine = regexp.MustCompile(`(?m)^ *((?:API=|curl ).*)$`)

// examples lets a shell read the lines of the text that set API or call curl, so
// that quotes and $API mean what they mean to a person who pastes them.
func examples(t *testing.T, text string) []example {
	t.Helper()
	script := `set -eu; curl() { printf '%s\n' "$#" "$@"; }` + "\n"
	for _, match := range exampleLine.FindAllStringSubmatch(text, -1) {
		script += match[1] + "\n"
	}
	output, err := exec.CommandContext(t.Context(), "sh", "-c", script).Output()
	if err != nil {
		t.Fatalf("a shell does not take\n%s\n%v", script, err)
	}
	words := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
	var found []example
	for len(words) > 0 && words[0] != "" {
		var count int
		if err := json.Unmarshal([]byte(words[0]), &count); err != nil || count >= len(words) {
			t.Fatalf("an argument has more than one line: %q", words)
		}
		found = append(found, parseCurl(t, words[1:1+count]))
		words = words[1+count:]
	}
	return found
}

// parseCurl knows the options that the examples use.
func parseCurl(t *testing.T, args []string) example {
	t.Helper()
	call := example{method: http.MethodGet, header: http.Header{}}
	for i := 0; i < len(args); i++ {
		value := func() string {
			i++
			if i == len(args) {
				t.Fatalf("curl %q lacks a value", args)
			}
			return args[i]
		}
		switch arg := args[i]; {
		case arg == "-s":
		case arg == "-X":
			call.method = value()
		case arg == "-d":
			call.method, call.body = http.MethodPost, value()
		case arg == "-H":
			name, content, _ := strings.Cut(value(), ": ")
			call.header.Add(name, content)
		case strings.HasPrefix(arg, "-") || call.url != "":
			t.Fatalf("curl %q: what is %q?", args, arg)
		default:
			call.url = arg
		}
	}
	return call
}

// run sends the example and returns the answer to a successful one.
func (e example) run(t *testing.T) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), e.method, e.url, strings.NewReader(e.body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = e.header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	want := map[string]int{
		http.MethodGet: http.StatusOK, http.MethodPost: http.StatusCreated,
		http.MethodPatch: http.StatusOK, http.MethodDelete: http.StatusNoContent,
	}
	if err != nil || response.StatusCode != want[e.method] {
		t.Fatalf("%s %s answers %s %s %v", e.method, e.url, response.Status, answer, err)
	}
	return answer
}

// runExamples runs all of them in order. "ID" in a URL stands for the server
// made last.
func runExamples(t *testing.T, text string) (methods []string) {
	t.Helper()
	var made struct{ ID string }
	for _, call := range examples(t, text) {
		call.url = strings.ReplaceAll(call.url, "ID", made.ID)
		answer := call.run(t)
		methods = append(methods, call.method)
		switch {
		case call.method == http.MethodPost:
			if err := json.Unmarshal(answer, &made); err != nil || made.ID == "" {
				t.Fatalf("made %s, %v", answer, err)
			}
		case strings.HasSuffix(call.url, "/servers?details=true"):
			if made.ID == "" || !strings.Contains(string(answer), made.ID) {
				t.Errorf("the list lacks the server %q: %s", made.ID, answer)
			}
		}
	}
	return methods
}

func servers(t *testing.T, url string) []iaasmock.Server {
	t.Helper()
	var state struct{ Servers []iaasmock.Server }
	if err := json.Unmarshal(example{method: http.MethodGet, url: url + "/admin/state"}.run(t), &state); err != nil {
		t.Fatal(err)
	}
	return state.Servers
}

func TestPrintedExamplesWork(t *testing.T) {
	url, intro, _ := start(t, "--no-auth", "--boot", "1ms", "--delete", "1h")
	methods := runExamples(t, strings.ReplaceAll(intro, "<id>", "ID"))
	if got := strings.Join(methods, " "); got != "GET GET POST GET DELETE" {
		t.Errorf("the examples are %s", got)
	}
	if left := servers(t, url); len(left) != 1 || left[0].Status != iaasmock.StatusDeleting {
		t.Errorf("in the end there is %+v", left)
	}
}

func TestReadmeExamplesWork(t *testing.T) {
	readme := readFile(t, "../../README.md")
	command := regexp.MustCompile(`(?m)^go run ./test/iaasmock/cmd/iaasmock (.*)$`).FindStringSubmatch(readme)
	if command == nil {
		t.Fatal("the README does not start the command")
	}
	url, _, _ := start(t, strings.Fields(command[1])...)
	const documented = "http://127.0.0.1:8080"
	methods := runExamples(t, strings.NewReplacer(documented, url, "<id>", "ID").Replace(readme))
	if got := strings.Join(methods, " "); got != "POST GET GET DELETE POST GET POST POST DELETE" {
		t.Errorf("the examples are %s", got)
	}
	if left := servers(t, url); len(left) != 1 || left[0].Status != iaasmock.StatusDeleting {
		t.Errorf("in the end there is %+v", left)
	}
	if o, err := parse(nil); err != nil || "http://"+o.address != documented {
		t.Errorf("by default the command listens on %s, %v", o.address, err)
	}
}

// The commands that the README starts are taken as a shell reads them.
func TestReadmeCommandsWork(t *testing.T) {
	commands := regexp.MustCompile(`(?m)^go run ./test/iaasmock/cmd/iaasmock (.*)$`).FindAllStringSubmatch(
		readFile(t, "../../README.md"), -1)
	faults := 0
	for _, command := range commands {
		words, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+command[1]).Output()
		if err != nil {
			t.Fatalf("a shell does not take %s: %v", command[1], err)
		}
		o, err := parse(strings.Split(strings.TrimSuffix(string(words), "\n"), "\n"))
		if err != nil {
			t.Errorf("%s: %v", command[1], err)
		}
		faults += len(o.faults)
	}
	if len(commands) != 2 || faults != 2 {
		t.Errorf("%d commands with %d faults", len(commands), faults)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
