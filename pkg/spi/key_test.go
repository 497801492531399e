// SPDX-FileCopyrightText: 2026 The machine-controller-manager-provider-stackit authors
// SPDX-License-Identifier: Apache-2.0

package spi

import (
	"context"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"math/rand"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"k8s.io/utils/clock"

	"github.com/stackitcloud/machine-controller-manager-provider-stackit/test/iaasmock"
)

// Where a private key's numbers have its modulus, its private exponent and its first factor, and how
// many of them are needed: the others follow from these, which takes long.
const (
	modulus  = 1
	exponent = 3
	factor   = 4
	needed   = 6
)

// numbersOf returns the numbers of a private key, as PKCS #1 has them, for a modulus of that
// many bits. Its factors are no primes: who parses it does not find that out, who signs does.
func numbersOf(bits int) []*big.Int {
	random, one, e := rand.New(rand.NewSource(1)), big.NewInt(1), big.NewInt(65537)
	factor := func(bits int) (factor, less *big.Int) {
		for {
			factor = new(big.Int).Rand(random, new(big.Int).Lsh(one, uint(bits-2)))
			for _, bit := range []int{0, bits - 2, bits - 1} {
				factor.SetBit(factor, bit, 1)
			}
			less = new(big.Int).Sub(factor, one)
			if new(big.Int).GCD(nil, nil, e, less).Cmp(one) == 0 {
				return factor, less
			}
		}
	}
	p, pLess := factor(bits / 2)
	q, qLess := factor(bits - bits/2)
	for new(big.Int).GCD(nil, nil, p, q).Cmp(one) != 0 {
		q, qLess = factor(bits - bits/2)
	}
	d := new(big.Int).ModInverse(e, new(big.Int).Mul(pLess, qLess))
	return []*big.Int{new(big.Int), new(big.Int).Mul(p, q), e, d, p, q,
		new(big.Int).Mod(d, pLess), new(big.Int).Mod(d, qLess), new(big.Int).ModInverse(q, p)}
}

// with returns the numbers with another one in its place.
func with(numbers []*big.Int, place int, number *big.Int) []*big.Int {
	numbers = slices.Clone(numbers)
	numbers[place] = number
	return numbers
}

// keyOf is a service-account key with a private key, whose numbers or DER are given.
func keyOf(t *testing.T, private any) string {
	t.Helper()
	der, isDER := private.([]byte)
	var err error
	if !isDER {
		if der, err = asn1.Marshal(private); err != nil {
			t.Fatal(err)
		}
	}
	const id = "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"
	key, err := json.Marshal(map[string]any{"id": id, "credentials": map[string]any{
		"iss": "a@b", "kid": "c", "sub": id, "privateKey": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}

// usableNumbers are those of a key that can sign, as far as it needs them.
func usableNumbers(t *testing.T, r *rig) []*big.Int {
	t.Helper()
	parsed, err := parseKey(string(r.key))
	if err != nil {
		t.Fatal(err)
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(privateKey(parsed)))
	if err != nil {
		t.Fatal(err)
	}
	return []*big.Int{new(big.Int), key.N, big.NewInt(int64(key.E)), key.D, key.Primes[0], key.Primes[1]}
}

// pkcs8 wraps the numbers of a key.
func pkcs8(t *testing.T, numbers []*big.Int) any {
	t.Helper()
	inner, err := asn1.Marshal(numbers)
	if err != nil {
		t.Fatal(err)
	}
	return struct {
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       []byte
	}{0, pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}, Parameters: asn1.NullRawValue}, inner}
}

// Files pass editors, shells and base64 on their way into a Secret. No error repeats anything of them.
func TestWhatIsNoKeyIsNamed(t *testing.T) {
	r := newRig(t)
	good := string(r.key)
	// with is the key with other fields, of its credentials if they have them; nil leaves one out.
	with := func(changes map[string]any) string {
		var key map[string]any
		if err := json.Unmarshal(r.key, &key); err != nil {
			t.Fatal(err)
		}
		credentials, _ := key["credentials"].(map[string]any)
		for name, value := range changes {
			in := key
			if _, ok := credentials[name]; ok {
				in = credentials
			}
			if in[name] = value; value == nil {
				delete(in, name)
			}
		}
		return asJSON(t, key)
	}
	parsed, err := parseKey(good)
	if err != nil {
		t.Fatal(err)
	}
	private := privateKey(parsed)
	lines := strings.Split(private, "\n")
	withPEM := func(text string) string { return with(map[string]any{"privateKey": text}) }
	pemOf := func(kind, line string) string {
		return withPEM(strings.Replace(strings.ReplaceAll(private, "PRIVATE KEY", kind), "\n", "\n"+line, 1))
	}
	utf16 := func(text string) string { return strings.ReplaceAll(text, "", "\x00")[1:] }
	encoded := base64.StdEncoding.EncodeToString
	const id = "d61a8564-c8dd-4ffb-bc15-143e7d0c85ed"
	inner := strings.Count(good, "\n") // the line before the last
	for name, row := range map[string]struct{ key, says string }{
		"spaces":                   {" \n", "is not the JSON that STACKIT hands out for a key: put in"},
		"another text":             {"s3cr3t", "is not the JSON that STACKIT hands out for a key: put in"},
		"a number":                 {"1", "is not the JSON that STACKIT hands out for a key"},
		"base64":                   {encoded(r.key), "is encoded in base64: put in the JSON itself"},
		"base64 in lines":          {strings.Join(strings.SplitAfter(encoded(r.key), "A"), "\r\n"), "is encoded in base64"},
		"words that base64 has":    {"example-key", "is not the JSON that STACKIT hands out"},
		"base64 of a bracket":      {"W1", "is not the JSON that STACKIT hands out"},
		"base64 of bytes":          {encoded([]byte("s3cr3t\x00\x01\xff")), "is not the JSON that STACKIT hands out"},
		"bytes":                    {"\x1f\x8b\x08\x00s3cr3t", "is not the JSON that STACKIT hands out"},
		"base64 for URLs":          {base64.RawURLEncoding.EncodeToString(r.key), "is encoded in base64"},
		"base64 twice":             {encoded([]byte(encoded(r.key))), "is encoded in base64"},
		"base64 of the PEM":        {encoded([]byte(private)), "is encoded in base64"},
		"base64 of UTF-16":         {encoded([]byte("\xff\xfe" + utf16(good))), "is encoded in base64"},
		"the PEM":                  {private, "is a PEM file, not a key with its credentials: put in"},
		"a byte order mark":        {"\ufeff" + good, "begins with a byte order mark"},
		"UTF-16":                   {"\xff\xfe" + utf16(good), "is UTF-16 text"},
		"UTF-16, big endian":       {"\xfe\xff" + utf16(good), "is UTF-16 text"},
		"UTF-16 without a mark":    {utf16(good), "is UTF-16 text"},
		"JSON in a string":         {asJSON(t, good), "is a string in quotes"},
		"a shell's quotes":         {"'" + good + "'", "is a string in quotes"},
		"quotes around JSON":       {`"` + good + `"`, "is a string in quotes"},
		"a path":                   {"/path/to/key", "is the path of a file"},
		"a path of home":           {"~/sa-key.json", "is the path of a file"},
		"a path nearby":            {"./key", "is the path of a file"},
		"a path of a variable":     {"$HOME/sa", "is the path of a file"},
		"a path of a share":        {`\\srv\share\sa`, "is the path of a file"},
		"a path with slashes":      {"C:/Users/me/key", "is the path of a file"},
		"a file's name":            {"sa-key-2026.json\n", "is the path of a file"},
		"a path of Windows":        {`C:\Users\me\key`, "is the path of a file"},
		"a URL of a file":          {"file:///path/to/key", "is the path of a file"},
		"curl's @":                 {"@key", "is the path of a file"},
		"a token":                  {"eyJhbGciOiJSUzUxMiJ9.eyJpc3MiOiJhIn0.s3cr3t", "is a token, not a key"},
		"YAML":                     {"id: s3cr3t\ncredentials:\n  iss: s3cr3t\n", "is YAML, not JSON"},
		"a trailing comma":         {strings.TrimSuffix(good, "\n}") + ",\n}", fmt.Sprintf("a trailing comma at the end of its line %d:", inner)},
		"a comma within":           {strings.Replace(good, "\n  }", ",\n  }", 1), "a trailing comma at the end of its line"},
		"a comma that is not":      {strings.Replace(good, ",\n", "\n", 1), "is not JSON: it goes wrong in its line 3:"},
		"a comment":                {"{ // s3cr3t\n" + good[1:], "is not JSON: it goes wrong in its line 1:"},
		"more behind it":           {good + "\n" + good, "is not JSON: it goes wrong in its line"},
		"a comment behind a comma": {strings.Replace(good, ",\n", ",\n// s3cr3t\n", 1), "is not JSON: it goes wrong in its line 3:"},
		"a name without quotes":    {strings.Replace(good, `"active"`, "active", 1), "is not JSON: it goes wrong in its line"},
		"line breaks in a text":    {strings.Replace(good, `\n`, "\n", 1), "is not JSON: a text breaks off at the end of its line"},
		"two commas":               {strings.Replace(good, ",\n", ",,\n", 1), "is not JSON: it goes wrong in its line 2:"},
		"half of it":               {good[:len(good)/2], "is JSON that ends too early"},
		"a bracket":                {"{", "is JSON that ends too early"},
		"another object":           {`{"key":` + good + `}`, "stands inside another object"},
		"a list":                   {"[" + good + "]", "stands inside another object"},
		"a Secret": {asJSON(t, map[string]any{"kind": "Secret", "stringData": map[string]any{"serviceAccountKey": good}}),
			"stands inside another object"},
		"its credentials alone": {asJSON(t, parsed.Credentials), `is only the "credentials" of a key: put in`},
		"no credentials":        {`{"id":"` + id + `"}`, `has no "credentials": put in`},
		"null":                  {"null", "is not the JSON that STACKIT hands out for a key"},
		"nothing in it": {`{"id":"` + id + `","credentials":{"sub":"` + id + `","aud":"s3cr3t"}}`,
			"lacks credentials.iss, credentials.kid, credentials.privateKey: put in the whole file"},
		"an id that is no UUID":       {with(map[string]any{"id": "s3cr3t"}), "has a field that cannot be read: id and credentials.sub must be UUIDs"},
		"a date that is none":         {with(map[string]any{"validUntil": "s3cr3t"}), "createdAt and validUntil dates"},
		"credentials that are a text": {`{"credentials":"s3cr3t"}`, "has a value of the wrong type in credentials: put in"},
		"without private key":         {with(map[string]any{"privateKey": nil}), "lacks credentials.privateKey: put in the whole file"},
		"without the user's own": {with(map[string]any{"privateKey": nil, "keyOrigin": "USER_PROVIDED"}),
			"lacks credentials.privateKey: STACKIT has only the public key of a key pair of your own; add your private key there, in PEM form"},
		"without the user's own, and more": {with(map[string]any{"privateKey": nil, "kid": nil, "keyOrigin": "USER_PROVIDED"}),
			"lacks credentials.kid, credentials.privateKey: put in the whole file"},
		"the user's own without kid": {with(map[string]any{"kid": nil, "keyOrigin": "USER_PROVIDED"}),
			"lacks credentials.kid: put in the whole file"},
		"a private key that is a number": {with(map[string]any{"privateKey": 1}), "has a value of the wrong type in credentials.privateKey: put in"},
		"a path for a private key":       {withPEM(`C:\keys\new.pem`), "cannot be used, must be an RSA key in PEM form"},
		"a private key that is empty":    {withPEM(""), "lacks credentials.privateKey"},
		"line breaks escaped twice":      {withPEM(strings.ReplaceAll(private, "\n", `\n`)), `escaped twice: must be \n in the JSON, not \\n`},
		"spaces for line breaks":         {withPEM(strings.Join(lines, " ")), "is damaged PEM"},
		"no last line":                   {withPEM(strings.Join(lines[:len(lines)-2], "\n")), "is damaged PEM"},
		"an encrypted private key":       {pemOf("ENCRYPTED PRIVATE KEY", ""), "is encrypted, must be an RSA key in PEM form without a passphrase"},
		"one encrypted as of old":        {pemOf("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,s3cr3t\n\n"), "is encrypted"},
		"a public key":                   {pemOf("PUBLIC KEY", ""), "is PEM of something else, must be the private RSA key"},
		"a private key without PEM":      {withPEM("s3cr3t"), "cannot be used, must be an RSA key in PEM form"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.sessions.Session(Credentials{ProjectID: testProject, ServiceAccountKey: row.key})
			if !IsRefused(err) || !strings.Contains(err.Error(), row.says) {
				t.Fatalf("got %v, want a CredentialsError that says %q", err, row.says)
			}
			for _, secret := range []string{"s3cr3t", lines[1][:16], "invalid character"} { // the last one is Gardener's word for a login that failed
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%v repeats %q", err, secret)
				}
			}
		})
	}
	if tokens := r.cloud.CallCounts()["Token"]; tokens != 0 {
		t.Errorf("%d tokens were asked for", tokens)
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A key of 44,910 bits took 9 s to parse, and 21 s to sign with; one whose first factor has 40,000
// bits and whose coefficient is missing took 5 minutes to parse.
func TestAKeyOfAbsurdSizeIsRefusedAtOnce(t *testing.T) {
	const notUsable = "credentials.privateKey cannot be used, must be an RSA key in PEM form"
	absurd, usual := numbersOf(44_910), numbersOf(2048)
	large := with(usual, factor, numbersOf(8000)[modulus])
	short, null := usableNumbers(t, newRig(t)), asn1.NullRawValue
	for name, row := range map[string]struct{ key, says string }{
		"44,910 bits":               {keyOf(t, absurd[:needed]), "must have at most 16384"},
		"28,000 bits":               {keyOf(t, numbersOf(28_000)), "must have at most 16384"},
		"within 16 KiB":             {keyOf(t, with(usual, modulus, absurd[modulus])), "an RSA modulus of 44910 bits, must have 2048 to 4096"},
		"within 16 KiB, in PKCS #8": {keyOf(t, pkcs8(t, with(usual, modulus, absurd[modulus]))), "an RSA modulus of 44910 bits, must have 2048 to 4096"},
		"another number":            {keyOf(t, with(usual, exponent, absurd[modulus])), notUsable},
		"a bit too many":            {keyOf(t, numbersOf(4097)), "an RSA modulus of 4097 bits"},
		"a bit too few":             {keyOf(t, pkcs8(t, numbersOf(2047))), "an RSA modulus of 2047 bits"},
		"too few numbers":           {keyOf(t, short), notUsable},
		"what are no numbers":       {keyOf(t, append(asAny(short), null, null, null)), notUsable},
		"a factor over the modulus": {keyOf(t, large), notUsable},
		"900 kB of text":            {strings.Repeat("s3cr3t", 150_000), "has 900000 bytes, must have at most 16384"},
		"900 kB of brackets":        {strings.Repeat("[", 900_000), "has 900000 bytes, must have at most 16384"},
		"no DER":                    {keyOf(t, []byte("s3cr3t")), notUsable},
		"no numbers":                {keyOf(t, []*big.Int{}), notUsable},
		"no RSA key":                {keyOf(t, struct{ Version, Key []byte }{}), notUsable},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for range 2 { // a failed build is not remembered
				_, err := r.sessions.Session(Credentials{ProjectID: testProject, ServiceAccountKey: row.key})
				var unusable *CredentialsError
				if !errors.As(err, &unusable) || !strings.Contains(err.Error(), row.says) ||
					strings.Contains(err.Error(), "s3cr3t") {
					t.Errorf("got %v, want a CredentialsError that says %q and shows nothing of the key", err, row.says)
				}
			}
		})
	}
}

func TestKeysOfUsualSizeAreAccepted(t *testing.T) {
	for _, bits := range []int{2048, 3072, 4096} {
		for form, key := range map[string]string{"PKCS #1": keyOf(t, numbersOf(bits)), "PKCS #8": keyOf(t, pkcs8(t, numbersOf(bits)))} {
			r := newRig(t)
			if _, err := r.sessions.Session(Credentials{ProjectID: testProject, ServiceAccountKey: key}); err != nil {
				t.Errorf("%d bits in %s: %v", bits, form, err)
			}
		}
	}
}

// withEvenFactor is numbersOf, with the double of the first factor in its place: crypto/rsa takes
// it when it parses a key, and panics when it signs.
func withEvenFactor(bits int) []*big.Int {
	numbers, one := numbersOf(bits), big.NewInt(1)
	p, q := new(big.Int).Lsh(numbers[factor], 1), numbers[factor+1]
	pLess, qLess := new(big.Int).Sub(p, one), new(big.Int).Sub(q, one)
	for e := int64(65537); ; e += 2 {
		public := big.NewInt(e)
		d := new(big.Int).ModInverse(public, new(big.Int).Mul(pLess, qLess))
		if d != nil && d.Cmp(numbers[modulus]) < 0 {
			return []*big.Int{new(big.Int), numbers[modulus], public, d, p, q,
				new(big.Int).Mod(d, pLess), new(big.Int).Mod(d, qLess), new(big.Int).ModInverse(q, p)}
		}
	}
}

// Such a key signed three times at each fetch, and counted as a token endpoint that is down.
func TestAKeyThatCannotSignIsNoEndpointThatIsDown(t *testing.T) {
	three := append(asAny(numbersOf(2048)), []struct{ Prime, Exponent, Coefficient int }{{3, 1, 1}})
	three[0] = 1
	for name, private := range map[string]any{
		"factors that are no primes": numbersOf(2048), "an even factor": withEvenFactor(2048), "three factors": three,
	} {
		bubble(t, name, func(t *testing.T) {
			r := newRig(t)
			r.key = []byte(keyOf(t, private))
			start := time.Now()
			err := list(t.Context(), r.session())
			var unusable *CredentialsError
			if !errors.As(err, &unusable) || !strings.Contains(err.Error(), "cannot sign") {
				t.Errorf("got %v, want a CredentialsError", err)
			}
			if took := time.Since(start); took > 0 {
				t.Errorf("it was tried again: it took %s", took)
			}
			if calls := r.cloud.CallCounts(); len(calls) > 0 {
				t.Errorf("there were calls: %v", calls)
			}
		})
	}
}

func asAny(numbers []*big.Int) (all []any) {
	for _, number := range numbers {
		all = append(all, number)
	}
	return all
}

// Whoever may write Secrets may write many with the same key.
func TestAKeyThatCannotSignIsTriedAgainAfter30Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signer, tries := newSigner(clock.RealClock{}), 0
		try := func(key byte) error {
			_, err := signer.exchange([32]byte{key}, nil, func() bool { return false }, func(http.RoundTripper) (string, error) {
				tries++
				return "", errors.New("crypto/rsa: decryption error")
			})
			return err
		}
		for _, row := range []struct {
			key   byte
			pause time.Duration
			want  int
		}{{1, 0, 1}, {1, 0, 1}, {2, 0, 2}, {1, 29 * time.Second, 2}, {1, time.Second, 3}, {1, 29 * time.Second, 3}} {
			<-time.After(row.pause)
			if err := try(row.key); !errors.Is(err, errCannotSign) {
				t.Errorf("got %v, want that the key cannot sign", err)
			}
			if tries != row.want {
				t.Errorf("after %+v it was tried %d times", row, tries)
			}
		}
	})
}

// Two Secrets sign one after the other, and neither waits for the other's answer.
func TestKeysSignOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		sessions := []*Session{r.session(), r.sessionIn(iaasmock.SecondProjectID)}
		const delay = 10 * time.Second
		r.cloud.Inject(iaasmock.Fault{Operation: "Token", Delay: delay})
		r.sessions.signer.turn <- struct{}{} // somebody else signs
		var group sync.WaitGroup
		for _, session := range sessions {
			group.Go(func() {
				if err := list(t.Context(), session); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if signed := r.cloud.CallCounts()["Token"]; signed != 0 {
			t.Errorf("%d assertions were signed beside another one", signed)
		}
		<-r.sessions.signer.turn
		start := time.Now()
		group.Wait()
		if took := time.Since(start); took != delay {
			t.Errorf("two tokens took %s, want the %s of one", took, delay)
		}
	})
}

// Callers share a fetch, which ends when the last of them has left.
func TestNoTokenIsAskedForWhereCallersLeft(t *testing.T) {
	for name, row := range map[string]struct {
		kind string
		// somebody else signs, or the token endpoint is down.
		queue, down bool
		tokens      int
	}{
		"the queue":                {kind: "key", queue: true},
		"an endpoint that is down": {kind: "key", down: true, tokens: 1},
		"with a workload identity": {kind: "workload identity", down: true, tokens: 1},
	} {
		bubble(t, name, func(t *testing.T) {
			r := newIdentity(newRig(t))
			session, err := r.sessions.Session(eachKind[row.kind](r))
			if err != nil {
				t.Fatal(err)
			}
			if row.queue {
				r.sessions.signer.turn <- struct{}{}
			}
			if row.down {
				r.cloud.Inject(iaasmock.Fault{Operation: "Token", Count: 1, Status: http.StatusServiceUnavailable})
			}
			leaving, leave := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			for range 5 {
				callers.Go(func() {
					if err := list(leaving, session); !errors.Is(err, context.Canceled) {
						t.Errorf("got %v, want the context's error", err)
					}
				})
			}
			synctest.Wait()
			leave()
			callers.Wait()
			if row.queue {
				<-r.sessions.signer.turn
			}
			<-time.After(time.Minute)
			if tokens := r.cloud.CallCounts()["Token"]; tokens != row.tokens {
				t.Errorf("%d tokens were asked for, want %d", tokens, row.tokens)
			}
			if err := list(t.Context(), session); err != nil {
				t.Errorf("who comes later: %v", err)
			}
		})
	}
}

// 200 rotations of a key kept its text 200 times for an hour.
func TestNoTextOfAKeyIsKept(t *testing.T) {
	r := newRig(t)
	r.session()
	before := heapInUse()
	for i := range 200 {
		key := string(r.key) + strings.Repeat(" ", maxKey-len(r.key)-i)
		if _, err := r.sessions.Session(Credentials{ProjectID: testProject, ServiceAccountKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	if grown := int64(heapInUse()) - int64(before); grown > 2<<20 {
		t.Errorf("200 keys take %d KiB", grown>>10)
	}
	runtime.KeepAlive(r)
}

func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// Whatever a Secret holds in place of a key is refused, and nothing panics.
func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		`{"credentials":{"iss":"a@b","kid":"c","privateKey":"-----BEGIN PRIVATE KEY-----\\n"}}`, "{\"a\":1,\n}", "[[", "{\"a\":\"\n\"}",
		"\xff\xfe{\x00", "\ufeff{}", `"{}"`, "e30=", "C:\\a", "ey.a.b", "credentials:", "-----BEGIN", "{}{}", " ",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if key, err := parseKey(text); err == nil {
			_, err = privateKeyBlock(privateKey(key))
			if err != nil && !IsRefused(err) {
				t.Error(err)
			}
		} else if !IsRefused(err) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
			t.Errorf("got %v, want a CredentialsError of one line", err)
		}
		_, _ = privateKeyBlock(text)
	})
}
