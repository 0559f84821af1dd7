//! The conversion of a CRD: webhooks by URL and by service, their versions, and the certificates of their
//! authority. It holds no key: what it mangles is a certificate without a use.

use serde_json::{Value, json};

use super::Generator;

/// Base64 in 64 columns: a self-signed certificate of an elliptic curve.
const CERTIFICATE: &str = include_str!("authority.pem");

impl Generator<'_> {
    /// Some `conversion`.
    pub(super) fn conversion(&mut self) -> Value {
        let webhook = self.webhook();
        match self.random.below(12) {
            0 => json!({"strategy": "Webhook"}),
            1 => json!({"strategy": ""}),
            2 => json!({"strategy": "None", "webhook": webhook}),
            3 => json!({"strategy": "webhook", "webhook": webhook}),
            4 => json!({"strategy": "None"}),
            5 => json!(null),
            _ => json!({"strategy": "Webhook", "webhook": webhook}),
        }
    }

    fn webhook(&mut self) -> Value {
        let mut client = self.client();
        if self.random.chance(45)
            && let Value::Object(client) = &mut client
        {
            client.insert("caBundle".to_owned(), self.bundle());
        }
        let versions = [
            json!(["v1"]),
            json!(["v1beta1", "v1"]),
            json!(["v2"]),
            json!(["v2", "v3"]),
            json!(["v1", "v1", "1x"]),
            json!(["V1", ""]),
            json!(["", ""]),
            json!([null]),
            json!([]),
            json!(null),
        ];
        json!({
            "clientConfig": client, "conversionReviewVersions": versions[self.random.below(versions.len())],
        })
    }

    fn client(&mut self) -> Value {
        if self.random.chance(45) {
            return json!({"url": self.random.pick(URLS)});
        }
        if self.random.chance(10) {
            return [
                json!({"url": "https://example.com", "service": {"name": "a", "namespace": "b"}}),
                json!({}),
                json!(null),
            ][self.random.below(3)]
            .clone();
        }
        let mut service = json!({"name": self.random.pick(&["a", "a", "", "A_b"]),
            "namespace": self.random.pick(&["b", "b", ""])});
        if self.random.chance(60) {
            service["path"] = self.random.pick(PATHS).into();
        }
        if self.random.chance(30) {
            service["port"] = [0, 443, 65_535, 65_536, -1, 70_000][self.random.below(6)].into();
        }
        json!({ "service": service })
    }

    fn bundle(&mut self) -> Value {
        let text = match self.random.below(12) {
            0 => String::new(),
            1 => "\n".to_owned(),
            2 => "xyz".to_owned(),
            3 => return self.random.pick(&["Cg==", "e30=", "not base64", "Cg", "Cg==\n"]).into(),
            4 => CERTIFICATE.repeat(2),
            5 => CERTIFICATE.to_owned(),
            6 => CERTIFICATE
                .replace("CERTIFICATE", self.random.pick(&["PUBLIC KEY", "certificate", "", "X509 CRL"])),
            _ => {
                let mut text = CERTIFICATE.to_owned();
                for _ in 0..self.random.between(1, 3) {
                    text = self.mangled(&text);
                }
                text
            }
        };
        encoded(text.as_bytes()).into()
    }

    fn mangled(&mut self, text: &str) -> String {
        let lines: Vec<&str> = text.lines().collect();
        let line = self.random.below(lines.len().max(1));
        match self.random.below(11) {
            0 => text.replace('\n', "\r\n"),
            1 => text.trim_end().to_owned(),
            2 => format!("# a comment\n{text}"),
            3 => format!("{text}trailing\n"),
            4 => text.replacen("-----\n", "-----\nProc-Type: 4,ENCRYPTED\n\n", 1),
            5 => text.replace("-----BEGIN", " -----BEGIN"),
            6 => lines
                .iter()
                .enumerate()
                .filter(|(index, _)| *index != line)
                .map(|(_, line)| format!("{line}\n"))
                .collect(),
            7 => text.chars().take(self.random.below(text.len().max(1))).collect(),
            8 => format!("{}{}", text.replace("CERTIFICATE", "EC PARAMETERS"), text),
            9 => text.replace('\n', " \n"),
            _ => {
                // Not within the certificate itself: what is wrong inside of one is not looked at.
                let line = if self.random.chance(50) { 0 } else { lines.len().saturating_sub(1) };
                let place = self.random.below(lines.get(line).map_or(0, |line| line.len()).max(1));
                let other = ['A', 'B', '/', '=', '-', '\n', 'z', '_'][self.random.below(8)];
                let edit = |text: &str| -> String {
                    text.chars()
                        .enumerate()
                        .map(|(index, letter)| if index == place { other } else { letter })
                        .collect()
                };
                lines
                    .iter()
                    .enumerate()
                    .map(|(index, text)| if index == line { edit(text) } else { (*text).to_owned() } + "\n")
                    .collect()
            }
        }
    }
}

/// Standard base64.
fn encoded(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_usize, |group, byte| group << 8 | usize::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[group >> (18 - 6 * place) & 0x3F];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

const URLS: &[&str] = &[
    "https://example.com/convert",
    "https://example.com:8443/a/b/",
    "http://u:p@/convert?a=b#c",
    "http://example.com",
    "https://",
    "https:///a",
    "",
    "example.com",
    "//example.com",
    "https://exa mple.com",
    "https://example.com/%zz",
    "https://[::1]:443/",
    "https://[::1",
    "https://example.com:port/",
    "https://u@example.com/",
    "https://example.com/?",
    "https://example.com/#",
    "HTTPS://example.com",
    "https:example.com",
    "https://example.com/\u{7f}",
    ":",
    "https://ex%41mple.com",
    "mailto:a@b",
];

const PATHS: &[&str] = &[
    "/", "", "//", "/convert", "/a/b/", "x//Y", "/a//b", "/A", "convert", "/a b", "/-", "/a.b/c-d", "é",
    "///", "/a/ ",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_encoded_with_padding() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("\u{ff}?", "w78/"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(encoded(bytes.as_bytes()), expected);
        }
    }
}
