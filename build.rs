//! Builds the helper's program, so that the library can hold it.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `AGENTWORKSPACE_HELPERS` | a directory with `agentworkspace-helper-amd64` and `agentworkspace-helper-arm64`, or one of them: taken instead of building one |
//! | `DOCS_RS` | none is built |

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The machines that helpers are for, as Rust and as container engines call them.
const ARCHITECTURES: [(&str, &str); 2] = [("x86_64", "amd64"), ("aarch64", "arm64")];

const PROGRAM: &str = "agentworkspace-helper";
const PREBUILT: &str = "AGENTWORKSPACE_HELPERS";

/// What of `src/` the program is not made from.
const NOT_IN_IT: [&str; 5] = ["container", "cli", "conformance", "main.rs", "target.rs"];

fn main() -> Result<()> {
    println!("cargo:rerun-if-env-changed={PREBUILT}");
    println!("cargo:rerun-if-env-changed=DOCS_RS");
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_HELPER").is_none() {
        return Ok(());
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut programs = Vec::new();
    let mut missing = "the library was built without one";
    if let Some(directory) = env::var_os(PREBUILT) {
        programs = prebuilt(Path::new(&directory))?;
    } else if env::var_os("DOCS_RS").is_none() {
        watch_sources()?;
        match build(&out) {
            Ok(program) => programs.push(program),
            Err(error) => {
                println!(
                    "cargo:warning=the helper for containers is left out, they are slower without: {error}"
                );
                missing = "it could not be built along with the library";
            }
        }
    }
    embed(&out, &programs, missing)
}

/// A program and the architecture that it is for, in the words of container engines.
struct Helper {
    architecture: &'static str,
    path: PathBuf,
}

fn prebuilt(directory: &Path) -> Result<Vec<Helper>> {
    let mut helpers = Vec::new();
    for (_, architecture) in ARCHITECTURES {
        let path = directory.join(format!("{PROGRAM}-{architecture}"));
        println!("cargo:rerun-if-changed={}", path.display());
        if path.is_file() {
            helpers.push(Helper { architecture, path: path.canonicalize()? });
        }
    }
    if helpers.is_empty() {
        let names = ARCHITECTURES.map(|(_, architecture)| format!("{PROGRAM}-{architecture}"));
        return Err(format!(
            "{PREBUILT} is {}, which has no {}",
            directory.display(),
            names.join(" and no ")
        )
        .into());
    }
    Ok(helpers)
}

/// Has this run again when something changes that the program is made from.
fn watch_sources() -> Result<()> {
    println!("cargo:rerun-if-changed=Cargo.toml");
    println!("cargo:rerun-if-changed=Cargo.lock");
    for entry in fs::read_dir("src")? {
        let entry = entry?;
        if !NOT_IN_IT.iter().any(|name| entry.file_name() == *name) {
            println!("cargo:rerun-if-changed={}", entry.path().display());
        }
    }
    Ok(())
}

/// Builds the program for this target's architecture, with nothing linked dynamically.
fn build(out: &Path) -> Result<Helper> {
    let machine = env::var("CARGO_CFG_TARGET_ARCH")?;
    let (_, architecture) = ARCHITECTURES
        .into_iter()
        .find(|(rust, _)| *rust == machine)
        .ok_or_else(|| format!("there is none for {machine}"))?;
    let target = env::var("TARGET")?;
    // `target/debug/build/agentworkspace-*/out`: all profiles share what is built here.
    let shared = out.ancestors().nth(4).ok_or("the output directory is nowhere")?.join("helper");
    let mut cargo = Command::new(env::var("CARGO")?);
    cargo
        .args(["build", "--quiet", "--locked", "--bin", PROGRAM])
        .args(["--no-default-features", "--features", "helper-program", "--profile", "helper"])
        // Named even where it is the host, so that the flags reach no build script.
        .args(["--target", &target])
        .arg("--target-dir")
        .arg(&shared)
        .arg("--manifest-path")
        .arg(Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("Cargo.toml"))
        .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static\x1f-Crelocation-model=static")
        // What the outer build is, a check by clippy for one, the inner is not.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("CARGO_BUILD_TARGET_DIR")
        .env_remove("CARGO_TARGET_DIR");
    for (name, _) in env::vars_os() {
        // Of the outer build too, and a change of one would build everything again.
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_FEATURE_") || name.starts_with("CARGO_PROFILE_"))
        {
            cargo.env_remove(name);
        }
    }
    let built = cargo.output()?;
    if !built.status.success() {
        let words = String::from_utf8_lossy(&built.stderr);
        let line = words.lines().find(|line| line.starts_with("error")).unwrap_or_default();
        return Err(format!("cargo ended with {} ({line})", built.status).into());
    }
    let program = shared.join(&target).join("helper").join(PROGRAM);
    // The shared one may be replaced while the compiler reads it.
    let path = out.join(PROGRAM);
    fs::copy(program, &path)?;
    Ok(Helper { architecture, path })
}

/// Writes the list that the library includes.
fn embed(out: &Path, helpers: &[Helper], missing: &str) -> Result<()> {
    let mut code = format!("const MISSING: &str = {missing:?};\nconst PROGRAMS: &[Program] = &[\n");
    for Helper { architecture, path } in helpers {
        let digest = Sha256::digest(fs::read(path)?);
        let digest = digest.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        writeln!(
            code,
            "Program {{ architecture: {architecture:?}, digest: {digest:?}, bytes: include_bytes!({path:?}) }},"
        )?;
    }
    code.push_str("];\n");
    fs::write(out.join("helpers.rs"), code)?;
    Ok(())
}
