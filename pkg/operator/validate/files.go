// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/pkg/operator/report"
)

const (
	// stdin is the file name for standard input.
	stdin = "-"
	// maxURL is the maximum size of the content at a URL.
	maxURL = 1 << 20
)

// source is a text to read once.
type source struct {
	// name is shown in findings; key is the name that the user gave.
	name, key string
	// itself means that the user named the file itself, not its folder.
	itself bool
	read   func(context.Context) ([]byte, error)
}

// sources expands the file names as kubectl does. It reports names that match nothing.
func (v *validator) sources() []source {
	var all []source
	add := func(key string, itself bool, read func(context.Context) ([]byte, error)) {
		same := slices.IndexFunc(all, func(known source) bool { return known.key == key })
		if same < 0 {
			name := key
			if isURL(key) {
				name = withoutSecrets(key)
			}
			all = append(all, source{report.OneLine(name), key, itself, read})
			return
		}
		all[same].itself = all[same].itself || itself
	}
	for _, name := range v.options.Files.Filenames {
		switch {
		case name == stdin:
			add(stdin, true, func(context.Context) ([]byte, error) { return io.ReadAll(v.options.Stdin) })
		case isURL(name):
			add(name, true, func(ctx context.Context) ([]byte, error) { return v.fetch(ctx, name) })
		default:
			paths, err := pathsOf(name, v.options.Files.Recursive)
			if err != nil {
				v.unread(name, err)
			}
			for _, path := range paths {
				add(path, path == filepath.Clean(name),
					func(context.Context) ([]byte, error) { return os.ReadFile(filepath.Clean(path)) })
			}
		}
	}
	if folder := v.options.Files.Kustomize; folder != "" {
		add("kustomize "+folder, false, func(context.Context) ([]byte, error) { return kustomized(folder) })
	}
	return all
}

// pathsOf returns the files for a name, which may be a file, a folder or a pattern. If a match of the pattern cannot be
// read, it returns an error beside the files of the others.
func pathsOf(name string, recursive bool) ([]string, error) {
	names := []string{name}
	if _, err := os.Stat(name); err != nil {
		matches, globErr := filepath.Glob(name)
		if len(matches) == 0 {
			return nil, cmp.Or(globErr, err)
		}
		names = matches
	}
	var paths []string
	var unreadable error
	for _, name := range names {
		name = filepath.Clean(name)
		root := name
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			root += string(filepath.Separator) // else a link to a folder is taken for a file
		}
		visitors, err := resource.ExpandPathsToFileVisitors(nil, root, recursive, resource.FileExtensions, nil)
		unreadable = cmp.Or(unreadable, err)
		for _, visitor := range visitors {
			if file, ok := visitor.(*resource.FileVisitor); ok {
				paths = append(paths, file.Path)
			}
		}
	}
	if len(paths) == 0 && unreadable == nil { // a pattern may match a folder without files beside others, as for kubectl
		return nil, fmt.Errorf("the folder has no file that ends in %s; -R includes its subfolders",
			strings.Join(resource.FileExtensions, ", "))
	}
	return paths, unreadable
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// withoutSecrets drops the parts of a URL that may be secret: user, query and fragment.
func withoutSecrets(name string) string {
	parsed, err := url.Parse(name)
	if err != nil {
		return "URL"
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path}).String()
}

func (v *validator) fetch(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := v.Bounded(ctx)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, name, http.NoBody)
	if err != nil {
		return nil, errors.New("not a valid URL")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) { // url.Error repeats the URL
			err = failed.Err
		}
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %d", response.StatusCode)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxURL+1))
	if err == nil && len(content) > maxURL {
		err = errors.New("larger than the limit of 1 MiB")
	}
	return content, err
}

// checkLocal returns an error if a kustomization, or one in a folder that it names, names something that is not on this
// computer: kustomize would clone or fetch it, without limits on size and time.
func checkLocal(folder string, seen map[string]bool) error {
	if folder = filepath.Clean(folder); seen[folder] {
		return nil
	}
	seen[folder] = true
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		text, err := os.ReadFile(filepath.Clean(filepath.Join(folder, name)))
		var read types.Kustomization
		if err != nil || sigsyaml.Unmarshal(text, &read) != nil { // kustomize reports it
			continue
		}
		for _, named := range namedBy(&read) {
			if strings.ContainsAny(named, "\n{[") { // an inline object, not a name
				continue
			}
			path := filepath.Join(folder, named)
			info, err := os.Stat(path)
			if err != nil {
				return fmt.Errorf("%s names %s, which is not on this computer: remote resources are not read",
					name, withoutSecrets(named))
			}
			if !info.IsDir() {
				continue
			}
			if err := checkLocal(path, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// namedBy returns the files, folders and URLs that a kustomization names.
func namedBy(read *types.Kustomization) []string {
	named := slices.Concat(read.Resources, read.Components, read.Crds, read.Configurations, read.Generators,
		read.Transformers, read.Validators)
	named = append(named, read.Bases...)               //nolint:staticcheck // they still work
	for _, patch := range read.PatchesStrategicMerge { //nolint:staticcheck // they still work
		named = append(named, string(patch))
	}
	for _, patch := range slices.Concat(read.Patches, read.PatchesJson6902) { //nolint:staticcheck // they still work
		named = append(named, patch.Path)
	}
	for _, replacement := range read.Replacements {
		named = append(named, replacement.Path)
	}
	named = append(named, read.OpenAPI["path"])
	var sources []types.KvPairSources
	for i := range read.ConfigMapGenerator {
		sources = append(sources, read.ConfigMapGenerator[i].KvPairSources)
	}
	for i := range read.SecretGenerator {
		sources = append(sources, read.SecretGenerator[i].KvPairSources)
	}
	for _, source := range sources {
		named = append(named, slices.Concat(source.EnvSources, []string{source.EnvSource})...)
		for _, file := range source.FileSources { // key=file
			named = append(named, file[strings.IndexByte(file, '=')+1:])
		}
	}
	return slices.DeleteFunc(named, func(name string) bool { return name == "" })
}

func kustomized(folder string) ([]byte, error) {
	if isURL(folder) {
		return nil, errors.New("not on this computer: remote resources are not read")
	}
	if err := checkLocal(folder, map[string]bool{}); err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // as kubectl does
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	return resources.AsYaml()
}

// unread reports a source that cannot be read.
func (v *validator) unread(name string, err error) {
	var path *os.PathError
	if errors.As(err, &path) { // os.PathError repeats the name
		err = path.Err
	}
	v.add(report.Finding{
		Verdict: report.Unknown, Position: report.Position{File: report.OneLine(name)}, Subject: "manifest",
		Found: "cannot be read: " + report.OneLine(err.Error()),
	})
}

// document is a part of a source that is read independently: an error in it does not hide errors in others.
type document struct {
	*validator
	source *source
	text   []byte
	// lines is the number of lines before it.
	lines int
}

// separator matches a line that starts a YAML document (---) or ends one (...).
var separator = regexp.MustCompile(`(?m)^(?:---|\.\.\.)(?:\s|$)`)

// isJSON reports whether a text starts like a JSON object.
func isJSON(text []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) }

// split splits the text of a source into documents.
func (v *validator) split(from *source, text []byte) []*document {
	var documents []*document
	begin, lines := 0, 0
	cut := func(end int) {
		documents = append(documents, &document{v, from, text[begin:end], lines})
		lines += bytes.Count(text[begin:end], []byte("\n"))
		begin = end
	}
	if isJSON(text) { // concatenated values, as jq prints them
		values := json.NewDecoder(bytes.NewReader(text))
		for values.Decode(new(json.RawMessage)) == nil {
			cut(int(values.InputOffset()))
		}
	}
	rest := begin
	for _, at := range separator.FindAllIndex(text[rest:], -1) {
		at = []int{at[0] + rest, at[1] + rest}
		if text[at[0]] == '-' {
			cut(at[0])
		} else {
			cut(at[1])
		}
	}
	cut(len(text))
	return documents
}
