//! Stamps the revision of the sources into the library. The JVM compares it with its own at load.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=COMET_SHUFFLE_REVISION");
    let revision = std::env::var("COMET_SHUFFLE_REVISION").unwrap_or_else(|_| git_revision());
    println!("cargo::rustc-env=COMET_SHUFFLE_REVISION={revision}");
}

/// The commit of the checkout, or `unknown` outside one. `scripts/build` passes the revision in the
/// environment, to both halves of the product.
fn git_revision() -> String {
    println!("cargo::rerun-if-changed=.git/HEAD");
    Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}
