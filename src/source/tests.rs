use std::fs;
use std::io;

use super::*;

#[test]
fn folders_are_walked_in_order_and_links_to_them_are_not() -> io::Result<()> {
    let folder = std::env::temp_dir().join(format!("etch-source-{}", std::process::id()));
    fs::create_dir_all(folder.join("b/.hidden"))?;
    fs::create_dir_all(folder.join("empty"))?;
    for (name, text) in
        [("c.yaml", "c: 1"), ("b/a.json", "{\"a\":1}"), ("b/.hidden/x.yml", "x: 1"), ("b/readme", "?")]
    {
        fs::write(folder.join(name), text)?;
    }
    std::os::unix::fs::symlink(&folder, folder.join("b/round"))?;
    std::os::unix::fs::symlink(folder.join("loop.yaml"), folder.join("loop.yaml"))?;
    // A socket stands for all that is no regular file. To open it fails at once, where a pipe blocks.
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("pipe.yml"))?;
    let mut seen = Vec::new();
    each(&[folder.clone(), folder.join("empty"), folder.join("none")], &mut io::empty(), &mut |document| {
        let text = document.map_or_else(|error| error.to_string(), |document| document.origin.to_string());
        seen.push(text.replace(&*folder.to_string_lossy(), ""));
        ControlFlow::Continue(())
    });
    fs::remove_dir_all(&folder)?;
    let [a, c, looped, pipe, empty, none] = seen.as_slice() else { panic!("{seen:?}") };
    assert_eq!([a.as_str(), c.as_str()], ["/b/a.json", "/c.yaml"]);
    assert!(looped.starts_with("/loop.yaml: cannot be read: "), "{looped}");
    assert_eq!(pipe, "/pipe.yml: is not a regular file; name it itself to read it");
    assert_eq!(empty, "/empty: this folder contains no .yaml, .yml or .json file");
    assert!(none.starts_with("/none: cannot be read: No such file"), "{none}");
    Ok(())
}

#[test]
fn templates_are_to_be_rendered() {
    let text = "\n{{- if .Values.crds }}\na: 1\n{{- end }}\n";
    assert_eq!(
        documents(&["-".into()], &mut text.as_bytes()).expect_err("a template").to_string(),
        "stdin: line 2: is a Helm template; render it first: helm template CHART | etch lint -"
    );
}
