//! `etch impact -o html`: one page that needs nothing but itself, in which what others wrote stays text.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::process::{etch, file, text};

#[test]
fn a_page_stands_alone_and_shows_texts_as_texts() -> Result<()> {
    let folder = file("tests/cli/cases/impact-html");
    let [new, old, objects] = ["new.yaml", "old.yaml", "objects.yaml"].map(|name| folder.join(name));
    let line = ["impact", "-f", text(&new), "--old", text(&old), "--objects", text(&objects), "-o"];
    let html = |more: &[&str]| etch(&[&line, &["html"][..], more].concat());
    let page = html(&[])?;
    ensure!(page.code == Some(1), "{page:?}");
    // etch impact -f new.yaml --old old.yaml --objects objects.yaml -o html > expected.html
    let expected = fs::read_to_string(folder.join("expected.html")).context("expected.html")?;
    ensure!(page.out == expected, "the page is another than expected.html:\n{}", page.out);
    for loaded in ["<script", "<link", "<img", "<iframe", "src=", "href=", "url(", "@import", "http"] {
        ensure!(!page.out.contains(loaded), "{loaded}");
    }
    for shown in [
        "&lt;script&gt;alert(\\&quot;a &amp; &#39;b&#39;\\&quot;)&lt;/script&gt;",
        "a&lt;b&gt;&amp;\\&quot;c&#39;",
        "shop/we&lt;i&gt;rd&amp;&#39;&quot;name",
        "prefers-color-scheme: dark",
    ] {
        ensure!(page.out.contains(shown), "{shown}");
    }
    are_closed(&page.out)?;
    let first = html(&["--limit", "1"])?;
    ensure!(first.out.contains("more objects; --limit 0 lists all"), "{first:?}");
    let same = etch(&["impact", "-f", text(&new), "--old", text(&new), "-o", "html"])?;
    ensure!(same.code == Some(0) && same.out.contains("Nothing changes for"), "{same:?}");
    are_closed(&same.out)
}

/// Each element ends where it should.
fn are_closed(page: &str) -> Result<()> {
    let mut open = Vec::new();
    for tag in page.split('<').skip(1) {
        let name = tag.split(|end: char| end == '>' || end.is_whitespace()).next().unwrap_or_default();
        match name.strip_prefix('/') {
            Some(name) => ensure!(open.pop() == Some(name), "</{name}> ends another element"),
            None if matches!(name, "!doctype" | "meta" | "wbr" | "br") => {}
            None => open.push(name),
        }
    }
    ensure!(open.is_empty(), "{open:?} do not end");
    Ok(())
}
