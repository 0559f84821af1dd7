// Ports writes what Go's own packages say of thousands of texts, one file for each Rust module that reads or writes as
// they do. The cases are random but always the same: pieces of well-formed texts, cut, joined and disturbed by a
// generator with a fixed seed. It must not decide anything by itself.
//
//	go -C e2e/oracle run ./ports ../../crates/go-text/src/go-1.26
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: ports DIRECTORY")
		os.Exit(2)
	}
	for name, cases := range map[string]func() []any{
		"base64": base64Cases, "duration": durations, "float": floats, "json": documents, "mail": addresses,
		"quote": quotes, "time": times, "url": urls,
	} {
		if err := write(filepath.Join(os.Args[1], name+".jsonl"), cases()); err != nil {
			fmt.Fprintln(os.Stderr, "ports:", err)
			os.Exit(1)
		}
	}
}

func write(path string, cases []any) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	lines := bufio.NewWriter(file)
	encoder := json.NewEncoder(lines)
	encoder.SetEscapeHTML(false)
	for _, one := range cases {
		if err := encoder.Encode(one); err != nil {
			return err
		}
	}
	if err := lines.Flush(); err != nil {
		return err
	}
	return file.Close()
}

// texts returns count different texts that are made of the seeds, about half of which are good where that is possible.
func texts(count int, seeds []string, pieces string, good func(string) bool) []string {
	random := rand.New(rand.NewPCG(1, uint64(len(seeds))))
	alphabet := []rune(pieces)
	seen, found := map[string]bool{}, []string{}
	wanted := map[bool]int{true: count - count/2, false: count / 2}
	add := func(text string) {
		verdict := good(text)
		if !seen[text] && utf8.ValidString(text) && len(text) <= 120 && wanted[verdict] > 0 {
			seen[text], wanted[verdict] = true, wanted[verdict]-1
			found = append(found, text)
		}
	}
	for _, seed := range seeds {
		add(seed)
	}
	for tries := 0; len(found) < count && tries < count*400; tries++ {
		text := []rune(seeds[random.IntN(len(seeds))])
		if random.IntN(3) == 0 {
			other := []rune(seeds[random.IntN(len(seeds))])
			text = append(text[:random.IntN(len(text)+1):len(text)], other[random.IntN(len(other)+1):]...)
		}
		for range random.IntN(4) {
			at := random.IntN(len(text) + 1)
			switch end := min(len(text), at+random.IntN(3)); random.IntN(4) {
			case 0:
				text = append(text[:at:at], text[end:]...)
			case 1:
				text = append(text[:at:at], append([]rune{alphabet[random.IntN(len(alphabet))]}, text[end:]...)...)
			case 2:
				text = append(text[:at:at], append([]rune{alphabet[random.IntN(len(alphabet))]}, text[at:]...)...)
			case 3:
				text = append(text[:end:end], append(append([]rune{}, text[at:end]...), text[end:]...)...)
			}
		}
		add(string(text))
	}
	return found
}

// asMoment is seconds, nanoseconds, offset, whether it is zero, RFC3339Nano, and RFC3339 in UTC; or nothing.
func asMoment(at time.Time, err error) []any {
	if err != nil {
		return nil
	}
	_, offset := at.Zone()
	return []any{
		at.Unix(), at.Nanosecond(), offset, at.IsZero(), at.Format(time.RFC3339Nano), at.UTC().Format(time.RFC3339),
	}
}

func times() []any {
	seeds := []string{
		"1970-01-01T00:00:00Z", "2020-02-29T23:59:59.120Z", "2021-02-29T00:00:00Z", "0001-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999999999Z", "2020-01-01T05:00:00+05:30", "2020-01-01T5:00:00Z", "2020-01-01T05:00:00,5Z",
		"2020-01-01t05:00:00z", "2020-01-01T05:00:60Z", "2020-01-01T24:00:00Z", "2020-01-01T05:00:00",
		"2020-01-01T05:00:00.Z", "2020-13-01T05:00:00Z", "2020-00-01T05:00:00-08:00", "", "2020-01-02",
		"0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-24:60", "1900-02-29T00:00:00Z", "2000-02-29T00:00:00.000001Z",
		"2023-12-31T23:30:15-01:45", "0001-01-01T02:00:00+02:00", "0001-01-01T00:00:00.0000000001Z",
		"2024-06-30T12:34:56.789-00:00", "2020-01-01T05:00:00.123456-07:00", "2020-01-01 05:00:00Z",
	}
	good := func(text string) bool { _, err := strfmt.ParseDateTime(text); return err == nil }
	cases := []any{}
	for _, text := range texts(3000, seeds, "0123456789:.,-+TZtz /é", good) {
		full, err := strfmt.ParseDateTime(text)
		cases = append(cases, map[string]any{
			"text":    text,
			"rfc3339": asMoment(time.Parse(time.RFC3339, text)),
			"local":   asMoment(time.Parse("2006-01-02T15:04:05", text)),
			"date":    asMoment(time.Parse("2006-01-02", text)),
			"strfmt":  asMoment(time.Time(full), err),
		})
	}
	return cases
}

func durations() []any {
	seeds := []string{
		"0", "1s", "-1.5h", "1h15m30.918s", ".5m", "1.s", "+5µs", "9223372036854775807ns", "-9223372036854775808ns",
		"9223372036854775808ns", "9223372036854775808ns9223372036854775808ns", "2562048h", "2562047h47m16.854775807s",
		"", "3", "s", ".s", "1d", "1 day", "-", "+0", "-0", "0.0000000000000000001s", "0.9223372036854775807h",
		"0.92233720368547758080h", "1.00000000000000000000000000001m", "100ms5us", "3μs", "2 weeks 3min", "3 HOURS",
		"5 seconds", "7 x", "day", "99999999999999999999 s", "1h-1m", "1e3s", "0x10s", "4hr3nano", "2wk", "00012m",
	}
	good := func(text string) bool { _, err := time.ParseDuration(text); return err == nil }
	cases := []any{}
	for _, text := range texts(3000, seeds, "0123456789.+-hmsunµμd ", good) {
		one := map[string]any{"text": text, "nanos": nil, "strfmt": nil}
		if span, err := time.ParseDuration(text); err == nil {
			one["nanos"] = int64(span)
		}
		if span, err := strfmt.ParseDuration(text); err == nil {
			one["strfmt"] = int64(span)
		}
		cases = append(cases, one)
	}
	return cases
}

func urls() []any {
	seeds := []string{
		"http://a.b/c?d=e&f=g#h", "https://user:pa%20ss@host:8080/p%2Fq/%7Er?x=1;y=2&z=%zz", "/just/a/path?q#f", "*", "",
		"mailto:a@b.c", "//host/path", "///path", "http://[::1]:80/", "http://[fe80::1%25en0]:8080/", "http://[::1%23]/",
		"a/b:c", "a:b/c", ":x", "1http://x", "http://a b/", "http://a%20b/", "http://a:b:c/", "ldap://a:1,b:2/x", "http://x:/",
		"http://x:a/", "http://%zz/", "HTTP://Ex%C3%A4mple.com/", "http:///x", "http:opaque?x", "http://a?b?c", "/a?", "?x=+%2B",
		"#f%20\"<", "/a b/é%", "/%41%2f(;,)", "http://a@b@c/", "http://u:p:q@h/", "http://h/a/../b/./c", "file:///etc/x",
		"http://[::ffff:1.2.3.4]/", "http://[1.2.3.4]/", "http://[::1]x/", "http://x/[y]", "x?a=1&a=2&&b&=c", "http://ÿ.x/",
		"http://a%25b/", "http://[::1%25%41%20]/", "javascript:alert(1)", "http://a;b=c/$&+,:@", "path:with/colon", "./x:y",
	}
	good := func(text string) bool { _, err := url.Parse(text); return err == nil }
	cases := []any{}
	for _, text := range texts(3000, seeds, "ab1/:?#[]@%2FfEe&=+;, .~!$'()*\"<>\\^`{|}é\x00\x7f", good) {
		one := map[string]any{"text": text, "request": nil, "url": nil}
		if read, err := url.ParseRequestURI(text); err == nil {
			one["request"] = read.String()
		}
		if read, err := url.Parse(text); err == nil {
			query := map[string][]string(read.Query())
			valid := utf8.ValidString(read.Host)
			for key, values := range query {
				valid = valid && utf8.ValidString(key+strings.Join(values, ""))
			}
			if !valid {
				// Such bytes have no JSON form.
				continue
			}
			one["url"] = map[string]any{
				"string": read.String(), "scheme": read.Scheme, "host": read.Host, "hostname": read.Hostname(),
				"port": read.Port(), "path": read.EscapedPath(), "query": query,
			}
		}
		cases = append(cases, one)
	}
	return cases
}

func addresses() []any {
	seeds := []string{
		"a@b", "a.b+c@d.e", "Name <a@b>", "\"Quoted \\\" Name\" <a@b.c>", "<a@b>", "a@[1.2.3.4]", "a@[::1]", "a@[x]", "a b <c@d>",
		"=?utf-8?q?J=C3=B6rg?= <j@x>", "=?iso-8859-1?B?SvZyZw==?= <j@x>", "=?koi8-r?q?x?= <j@x>", "=?utf-8?q??= <j@x>",
		"=?utf-8?b?=?= =?utf-8?q?a?= x <j@x>", "a@b (comment)", "a@b (c (nested\\) d))", "(c) a@b", "x (c) y <a@b>", "group: a@b;",
		"group: a@b, c@d;", "group:;", "group: ;", "a@b, c@d", ".a@b", "a.@b", "a..b@c", "\"a b\"@c", "\"\"@c", "\"a\\\x00\"@c", "a@b.",
		"@b", "a@", "", " a@b ", "\ta@b\r\n", "é@ü.de", "\"é\" <a@b>", "a@b>", "<<a@b>>", "a <b@c> d", "a@b (=?x?q?y?=)",
		"=?utf-8?q?a_b=20?= =?utf-8?q?c?= <d@e>", "a@\"b\"", "x: <a@b>;", "Name(c) <a@b>", "a\x7f@b", "=?US-ASCII?Q?a?=<a@b>",
	}
	good := func(text string) bool { _, err := mail.ParseAddress(text); return err == nil }
	cases := []any{}
	for _, text := range texts(3000, seeds, "ab.@<>()[]:;, \"\\=?_é\t1", good) {
		cases = append(cases, map[string]any{"text": text, "address": good(text)})
	}
	return cases
}

func quotes() []any {
	random := rand.New(rand.NewPCG(2, 0))
	ranges := []rune{0x20, 0x80, 0x250, 0x600, 0x2100, 0x3000, 0xd7ff, 0xe100, 0x10000, 0x1f700, 0x20000, 0xe0200, 0x10ffff}
	cases := []any{}
	for range 2000 {
		text := strings.Builder{}
		for range random.IntN(6) {
			letter := random.Int32N(ranges[random.IntN(len(ranges))] + 1)
			if random.IntN(4) == 0 {
				letter = []rune("\"'\\\a\b\f\n\r\t\v\x00\x7f\u00ad\u2028\ufeff\ufffd<>&")[random.IntN(19)]
			}
			if utf8.ValidRune(letter) {
				text.WriteRune(letter)
			}
		}
		cases = append(cases, map[string]any{"text": text.String(), "quote": strconv.Quote(text.String())})
	}
	return cases
}

func floats() []any {
	random := rand.New(rand.NewPCG(3, 0))
	seeds := []string{
		"0", "-0", "1", "1.5", "1e6", "999999", "1000000", "123456.5", "1e21", "1e20", "1e-5", "0.0001", "0.00001", "1e308", "2e308",
		"-1e309", "5e-324", "2e-324", "inf", "-Infinity", "+Inf", "nan", "NaN", "+nan", "infin", "1e", "e1", ".5", "5.", ".", "", "1_000",
		"0x1p4", " 1", "1 ", "1e+5", "1E5", "--1", "+1", "9007199254740993", "1.7976931348623159e308", "0.1e-0005", "１",
	}
	good := func(text string) bool { _, err := strconv.ParseFloat(text, 64); return err == nil }
	cases := []any{}
	for _, text := range texts(1500, seeds, "0123456789.eE+-infa", good) {
		one := map[string]any{"text": text, "bits": nil}
		if number, err := strconv.ParseFloat(text, 64); err == nil && !strings.ContainsAny(text, "xX_") {
			one["bits"] = strconv.FormatUint(math.Float64bits(number), 16)
		} else if err == nil {
			continue
		}
		cases = append(cases, one)
	}
	for range 1500 {
		number := math.Float64frombits(random.Uint64())
		switch random.IntN(3) {
		case 0:
			number = float64(random.Int64N(1<<53)) * math.Pow10(random.IntN(40)-25)
		case 1:
			number = math.Trunc(float64(random.Int64()) / math.Pow10(random.IntN(18)))
		}
		one := map[string]any{
			"bits": strconv.FormatUint(math.Float64bits(number), 16), "shown": fmt.Sprintf("%v", number),
			"general": strconv.FormatFloat(number, 'g', -1, 64),
		}
		if text, err := json.Marshal(number); err == nil {
			one["json"] = string(text)
		}
		cases = append(cases, one)
	}
	return cases
}

func documents() []any {
	random := rand.New(rand.NewPCG(4, 0))
	var document func(depth int) any
	word := func() string {
		letters := []rune("ab \"\\<>&\u2028\u2029é\b\f\n\x00\x7f😀")
		text := []rune{}
		for range random.IntN(4) {
			text = append(text, letters[random.IntN(len(letters))])
		}
		return string(text)
	}
	document = func(depth int) any {
		switch kind := random.IntN(8); {
		case kind < 2 && depth > 0:
			list := []any{}
			for range random.IntN(4) {
				list = append(list, document(depth-1))
			}
			return list
		case kind < 4 && depth > 0:
			object := map[string]any{}
			for range random.IntN(4) {
				object[word()] = document(depth - 1)
			}
			return object
		case kind == 4:
			return []any{nil, true, false, int64(0), int64(-7), int64(math.MaxInt64)}[random.IntN(6)]
		case kind == 5:
			return float64(random.Int64N(1<<40)) * math.Pow10(random.IntN(40)-30)
		}
		return word()
	}
	cases := []any{}
	for range 1500 {
		text, err := json.Marshal(document(3))
		if err != nil {
			continue
		}
		// As the API server decodes it: whole numbers are integers there.
		var decoded any
		if err := utiljson.Unmarshal(text, &decoded); err != nil {
			continue
		}
		again, err := json.Marshal(decoded)
		if err != nil {
			continue
		}
		cases = append(cases, map[string]any{
			"value": json.RawMessage(text), "json": string(again), "shown": fmt.Sprintf("%v", decoded),
		})
	}
	return cases
}

func base64Cases() []any {
	seeds := []string{
		"", "YWJj", "YWI=", "YQ==", "-_8=", "+/8=", "YW\nJj\r", "YWI", "YQ==YWJj", "YR==", "=", "====", "Y===", "YQ=\n=", "YQ= =", "YWJjZGVm",
	}
	good := func(text string) bool { _, err := base64.StdEncoding.DecodeString(text); return err == nil }
	cases := []any{}
	for _, text := range texts(1500, seeds, "ABYZabz019+/-_= \r\né", good) {
		one := map[string]any{"text": text, "standard": nil, "url": nil}
		if bytes, err := base64.StdEncoding.DecodeString(text); err == nil {
			one["standard"] = hex.EncodeToString(bytes)
		}
		if bytes, err := base64.URLEncoding.DecodeString(text); err == nil {
			one["url"] = hex.EncodeToString(bytes)
		}
		cases = append(cases, one)
	}
	return cases
}
