// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"strings"
	"sync"

	"k8s.io/klog/v2"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// keyCount: one for the foreigner, two for each cluster, and one for another project.
const keyCount = 6

// projectOfKey is the project of the key with this index.
func projectOfKey(i int) string {
	if i == keyCount-1 {
		return iaasmock.SecondProjectID
	}
	return iaasmock.DefaultProjectID
}

// simulationKeys are made once: that takes long.
var simulationKeys = sync.OnceValue(func() [][]byte {
	cloud := iaasmock.New()
	var keys [][]byte
	for i := range keyCount {
		key, err := cloud.NewServiceAccountKey(projectOfKey(i))
		if err != nil {
			panic(err)
		}
		keys = append(keys, key)
	}
	return keys
})

// secrets are texts that nothing may say, and what they are.
var secrets = sync.OnceValue(func() map[string]string {
	found := map[string]string{
		userData: "userData", base64.StdEncoding.EncodeToString([]byte(userData)): "userData in base64",
		"PRIVATE KEY": "a private key", "eyJ": "a token",
	}
	for _, raw := range simulationKeys() {
		var key struct {
			Credentials struct{ PrivateKey string }
		}
		if err := json.Unmarshal(raw, &key); err != nil {
			panic(err)
		}
		found[key.Credentials.PrivateKey[100:140]] = "a private key's body"
	}
	return found
})

// secretIn names the secret that a text holds; "" if there is none.
func secretIn(text string) string {
	for secret, name := range secrets() {
		if strings.Contains(text, secret) {
			return name
		}
	}
	return ""
}

// listener reads all that is logged, and remembers what should not have been.
type listener struct {
	mu    sync.Mutex
	leaks []string
}

// Write implements io.Writer.
func (l *listener) Write(text []byte) (int, error) {
	if leak := secretIn(string(text)); leak != "" {
		l.mu.Lock()
		l.leaks = append(l.leaks, leak+" in: "+string(text))
		l.mu.Unlock()
	}
	return len(text), nil
}

var log listener

// ListenToLogs lets every run look for secrets in what is logged, which is not
// shown any more.
func ListenToLogs() {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL", "v": "4"} {
		if err := flags.Set(name, value); err != nil {
			panic(err)
		}
	}
	klog.SetOutput(&log)
}
