use super::*;
use std::collections::BTreeSet;
#[test]
fn vectors() {
    let verbose: usize = std::env::var("SHOW").ok().and_then(|s| s.parse().ok()).unwrap_or(20);
    for path in std::env::var("VECTORS").unwrap().split(',') {
        let (mut n, mut bad, mut detail, mut shown) = (0, 0, 0, 0);
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let v = crate::domain::json::Json::parse(line.as_bytes()).unwrap();
            let op = v["op"].as_str().unwrap();
            if std::env::var("OP").is_ok_and(|o| o != op) {
                continue;
            }
            n += 1;
            let schema = match Schema::parse(&v["schema"]) {
                Ok(s) => s,
                Err(e) => {
                    if v["expect"].get("error").is_none() {
                        bad += 1;
                        println!("{} schema: {e}", v["id"]);
                    }
                    continue;
                }
            };
            if v["expect"].get("error").is_some() {
                println!("{} expects error {}", v["id"], v["expect"]);
                bad += 1;
                continue;
            }
            let got: Vec<Finding> = match op {
                "validate" => Validator::new(&schema).object(&v["read"]),
                _ => continue,
            };
            let want: BTreeSet<(String, String, String)> = v["expect"]["errors"]
                .as_array()
                .unwrap()
                .iter()
                .map(|e| {
                    (
                        e["type"].as_str().unwrap().into(),
                        e["field"].as_str().unwrap().into(),
                        e["detail"].as_str().unwrap().into(),
                    )
                })
                .collect();
            let got: BTreeSet<(String, String, String)> =
                got.into_iter().map(|f| (f.kind.to_string(), f.field, f.detail)).collect();
            let pairs = |s: &BTreeSet<(String, String, String)>| {
                s.iter().map(|(a, b, _)| (a.clone(), b.clone())).collect::<BTreeSet<_>>()
            };
            if pairs(&got) != pairs(&want) {
                bad += 1;
                shown += 1;
                if shown < verbose {
                    println!(
                        "{} {op}\n  got-only {:?}\n  want-only {:?}",
                        v["id"],
                        got.difference(&want).collect::<Vec<_>>(),
                        want.difference(&got).collect::<Vec<_>>()
                    );
                }
            } else if got != want {
                detail += 1;
                shown += 1;
                if shown < verbose {
                    println!(
                        "{} {op} DETAIL\n  got-only {:?}\n  want-only {:?}",
                        v["id"],
                        got.difference(&want).collect::<Vec<_>>(),
                        want.difference(&got).collect::<Vec<_>>()
                    );
                }
            }
        }
        println!("{path}: {n} vectors, {bad} bad, {detail} details");
    }
}
