// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/clean"
	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

// mostRemedies is how many lines clean shows for servers that stay.
const mostRemedies = 10

// cleaning is one run of clean.
type cleaning struct {
	*options
	clean   clean.Options
	dryRun  bool
	yes     bool
	wait    bool
	timeout time.Duration
	output  format
	// given are the flags of the command line, as they are written there.
	given []string
}

// show says what would be deleted, and what is left alone.
func (c *cleaning) show(plan *clean.Plan) {
	if len(plan.Orphans) > 0 {
		c.table(plan.Orphans)
	}
	for _, place := range plan.Places {
		c.sayWithheld(plan, place)
		for _, reason := range place.Reasons {
			if len(plan.In(place)) > 0 {
				c.say("Mind: %s.", reason)
			}
		}
	}
	c.sayKept(plan.Kept)
	switch {
	case len(plan.Orphans) > 0:
	case slices.ContainsFunc(plan.Kept, func(kept clean.Kept) bool { return kept.Withheld }):
		c.say("Nothing is deleted.")
	default:
		c.say("There is nothing to delete. Looked at:")
		for _, place := range plan.Looked() {
			c.say("  %s", place)
		}
	}
}

// sayWithheld says why orphans of a place are left alone, and how somebody who is sure deletes
// them.
func (c *cleaning) sayWithheld(plan *clean.Plan, place *clean.Place) {
	ids := withheldIn(plan, place)
	if len(ids) == 0 {
		return
	}
	c.say("Left alone in %v: %s (%s), because", place, report.Count(len(ids), "orphan"), strings.Join(ids, ", "))
	for _, reason := range place.Reasons {
		c.say("  %s", reason)
	}
	switch place.Needs {
	case clean.Nobody, clean.Flag:
		return
	case clean.Typed:
		ids = c.clean.ServerIDs
	case clean.TypedWithIDs:
	}
	c.say("Who is sure runs this on a terminal, and types the cluster's name and the number of servers:")
	c.say("  %s", strings.Join(slices.Concat([]string{"mcm-stackit clean"}, c.given, ids), " "))
	if slices.Contains(c.given, "--filename=FILE") {
		c.say("  FILE must be a file: standard input was read, and is for the answer then.")
	}
}

// withheldIn are the IDs of a place's orphans that need more than was said.
func withheldIn(plan *clean.Plan, place *clean.Place) (ids []string) {
	for i := range plan.Kept {
		if kept := &plan.Kept[i]; kept.Withheld && kept.Needs != clean.Flag && kept.ProjectID == place.ProjectID && kept.Region == place.Region {
			ids = append(ids, kept.ID)
		}
	}
	return ids
}

// sayKept says why servers are left alone, but for those that only need more to be said.
func (c *cleaning) sayKept(all []clean.Kept) {
	var owned []string
	for _, kept := range all {
		named := slices.Contains(c.clean.ServerIDs, kept.ID)
		switch {
		case kept.Withheld && kept.Needs != clean.Flag, len(c.clean.ServerIDs) > 0 && !named:
		case !named && kept.Remedy != "" && !kept.Withheld:
			owned = append(owned, kept.Remedy)
		default:
			c.say("Server %s is left alone: %s.", strings.TrimSpace(kept.ID+" "+kept.Name), kept.Reason)
			if kept.Remedy != "" {
				c.say("  To delete it: %s", kept.Remedy)
			}
		}
	}
	if len(owned) == 0 {
		return
	}
	c.say("Servers that belong to Machines and stay: %d. To delete one with its Machine:", len(owned))
	for _, remedy := range owned[:min(len(owned), mostRemedies)] {
		c.say("  %s", remedy)
	}
	if len(owned) > mostRemedies {
		c.say("  and so on: -o json has all")
	}
}

// table shows the orphans: beside the data, if that is JSON or YAML.
func (c *cleaning) table(orphans []clean.Orphan) {
	out := c.streams.Out
	if c.output.value != "" {
		out = c.streams.ErrOut
	}
	t := &table{columns: []column{
		{name: "CLASS"}, {name: "MACHINE"}, {name: "SERVER"}, {name: "STATE"}, {name: "AGE"}, {name: "PROJECT"}, {name: "REGION"},
	}}
	for _, orphan := range orphans {
		t.addRow(orphan.ID, orphan.Class, orphan.Machine, orphan.ID, orphan.State,
			duration.HumanDuration(c.clock.Since(orphan.CreatedAt)), orphan.ProjectID, orphan.Region)
	}
	_ = t.print(out, false)
}

// report says what became of a server: beside the data, if that is JSON or YAML.
func (c *cleaning) report(deletion clean.Deletion) {
	name := fmt.Sprintf("server %s (%s)", deletion.Orphan.ID, deletion.Orphan.Name)
	switch deletion.Outcome {
	case clean.NotDeleted:
		c.say("%s is not deleted: %s", name, deletion.Reason)
		return
	case clean.Unknown:
		c.say("%s may be deleted or not: %s", name, deletion.Reason)
		return
	case clean.Requested:
		name += " is being deleted"
	case clean.Gone:
		name += " deleted"
	}
	if c.output.value == "" {
		if _, err := fmt.Fprintln(c.streams.Out, name); err == nil {
			return
		}
	}
	c.say("%s", name)
}

// showProgress shows it off a terminal, too, as lines: a deletion may take minutes.
func (c *cleaning) showProgress(progress *progress, text string) {
	if isTerminal(c.streams.ErrOut) {
		progress.show(text)
		return
	}
	c.say("%s", text)
}

// flagArguments writes a flag as on the command line; those that answer the question are left
// out.
func flagArguments(flag *pflag.Flag) []string {
	if flag.Name == "yes" || flag.Name == "output" {
		return nil
	}
	values := []string{flag.Value.String()}
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		values = list.GetSlice()
	}
	var all []string
	for _, value := range values {
		switch {
		case flag.Name == "token" || flag.Name == "password":
			value = "..."
		case flag.Name == "filename" && value == "-":
			value = "FILE"
		}
		all = append(all, "--"+flag.Name+"="+shellQuoted(value))
	}
	return all
}

// shellQuoted quotes a value for a shell, if it must be.
func shellQuoted(value string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=./:,@+%", r)
	}
	if value != "" && strings.IndexFunc(value, func(r rune) bool { return !plain(r) }) < 0 {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
