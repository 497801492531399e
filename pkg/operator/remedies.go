// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"regexp"
	"slices"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
)

// Remedy is a row of the table of samples/README.md, "When a Machine does not come up".
type Remedy struct {
	// Cause is why a Machine does not come up, Remedy what to do about it.
	Cause, Remedy string

	// codes are those of the manager; none means that it said nothing at all.
	codes []codes.Code
	says  []saying
}

// saying is what a text may say.
type saying struct {
	// shown is the table's own, in which … stands for any text.
	shown string
	// pattern is what to look for; nil means shown.
	pattern *regexp.Regexp
}

// in says whether a text says it.
func (s saying) in(text string) bool {
	if s.pattern != nil {
		return s.pattern.MatchString(text)
	}
	for part := range strings.SplitSeq(s.shown, "…") {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// connectionError matches what Go's network packages say of a connection that failed.
var connectionError = regexp.MustCompile(`: (dial|read|write|remote error|local error): |\bEOF\b|connection reset|connection refused|TLS handshake`)

// remedyFor returns the first row that is about a code and text; nil if there is none.
func remedyFor(code codes.Code, text string) *Remedy {
	for i := range remedies {
		says := func(s saying) bool { return s.in(text) }
		if slices.Contains(remedies[i].codes, code) && slices.ContainsFunc(remedies[i].says, says) {
			return &remedies[i]
		}
	}
	return nil
}

// remedyForSilence returns the row about a Machine of which the manager says nothing.
func remedyForSilence() *Remedy { return &remedies[0] }

// row makes a row of the table; says are as it shows them.
func row(cause, remedy string, code codes.Code, says ...string) Remedy {
	made := Remedy{Cause: cause, Remedy: remedy, codes: []codes.Code{code}}
	for _, shown := range says {
		made.says = append(made.says, saying{shown: shown})
	}
	return made
}

// or adds another code.
func (r Remedy) or(code codes.Code) Remedy {
	r.codes = append(r.codes, code)
	return r
}

// orMatches adds a saying that is no text but a kind of texts.
func (r Remedy) orMatches(shown string, pattern *regexp.Regexp) Remedy {
	r.says = append(r.says, saying{shown, pattern})
	return r
}

// remedies are the rows of the table in its order: the first that matches counts.
var remedies = []Remedy{
	{Cause: "the Secret, or its key userData, is missing",
		Remedy: "create it; the sidecar's log repeats userdata field not found"},
	row("wrong values; every field is named",
		"correct the MachineClass or the Secret",
		codes.InvalidArgument, "providerSpec.…", "secret.…"),
	row("the disk has no size, or a smaller one than its image asks for",
		"set bootVolume.size",
		codes.InvalidArgument, "boot device size is not valid or missing"),
	row("a value that only the cloud can check, such as a machine type that does not exist",
		"correct what the message names",
		codes.InvalidArgument, "the API refused the request"),
	row("an image, network, key pair, NIC or volume is not in this project and region",
		"correct the ID; check region",
		codes.InvalidArgument, "something … was not found"),
	row("the Secret now names another project",
		"restore the project: servers do not move",
		codes.InvalidArgument, "providerID … is of project"),
	row("the class is another provider's",
		"set provider: stackit, or leave it out",
		codes.InvalidArgument, "machineClass.provider"),
	row("the name is too long for a server",
		"shorten the MachineDeployment's name",
		codes.InvalidArgument, "machine.metadata.name"),
	row("the key is wrong, expired or revoked",
		"put a valid service-account key into the Secret",
		codes.Unauthenticated, "Authentication failed"),
	row("the service account may not do this in this project",
		"grant it these permissions (pkg/provider/apis/README.md); check that key and projectId belong together",
		codes.PermissionDenied, "not authorized"),
	row("the project's quota is used up",
		"raise it, or scale something else down; the class gets the same answer for 1 minute",
		codes.ResourceExhausted, "Quota exceeded"),
	row("no capacity for this machine type and zone",
		"another zone or machine type, or wait; the class gets the same answer for 1 minute",
		codes.ResourceExhausted, "There are not enough hosts available"),
	row("the service account's key was refused during a call",
		"put a valid one into the Secret",
		codes.Unavailable, "waiting for the server was interrupted"),
	row("another call is creating this Machine's server",
		"nothing: the next call goes on",
		codes.Aborted, "another call is creating"),
	row("the server runs, its network is not ready",
		"nothing: the next call goes on",
		codes.Uninitialized, "its NICs do not carry", "not all of its NICs have an address").or(codes.Unavailable),
	row("the server's labels name another machine or cluster",
		"restore the label the text names, or delete the server by hand if it is nobody's",
		codes.FailedPrecondition, "is not this machine's and is left alone"),
	row("the class's label that ends in /cluster has a value that no server can carry",
		"repair providerSpec.labels",
		codes.FailedPrecondition, "the cluster label … cannot be used"),
	row("a NIC or volume of the class is attached elsewhere",
		"detach it: classes with nicIds or volumes serve one machine",
		codes.FailedPrecondition, "is in use"),
	row("the answer to a request was lost; its result is looked for",
		"nothing",
		codes.DeadlineExceeded, "may have been sent"),
	row("the server boots or goes for longer than a call waits",
		"nothing: the next call goes on with it",
		codes.DeadlineExceeded, "not done in time"),
	row("somebody deleted the server",
		"nothing: a new one is made",
		codes.Aborted, "was deleted while it was being created"),
	row("the cloud is working on the server, or its deletion failed",
		"nothing at first; if it stays, ask STACKIT with the server's ID",
		codes.Aborted, "busy", "two DELETEs … were accepted"),
	row("a young server was not found",
		"nothing: its next status tells",
		codes.Unavailable, "too young to be sure that it is gone"),
	row("the API is busy or out of order",
		"nothing at first; requestID in the sidecar's log is what support asks for",
		codes.Unavailable, "Too many requests", "status 5…").orMatches("connection errors", connectionError),
	row("the cloud could not make the server; it is deleted and made anew",
		"see the reason in the text",
		codes.Internal, "ended in state ERROR"),
	row("the API took the update and did not do it",
		"ask STACKIT with the NIC's ID",
		codes.Internal, "does not carry the allowedAddresses"),
	row("a bug of the driver",
		"report it with the stack from the sidecar's log",
		codes.Internal, "failed unexpectedly"),
}
