//! Enables the tests beside the library's files that need other implementations.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(conformance)");
    println!("cargo::rustc-cfg=conformance");
}
