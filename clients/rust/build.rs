//! Writes the stubs from the descriptors that the Python package publishes. SIDECAR_DESCRIPTORS names them where they lie elsewhere.

use std::path::PathBuf;
use std::{env, fs};

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-env-changed=SIDECAR_DESCRIPTORS");
    let path = env::var_os("SIDECAR_DESCRIPTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../services/interlock/api/descriptors.binpb"),
        PathBuf::from,
    );
    println!("cargo:rerun-if-changed={}", path.display());
    let files = prost_types::FileDescriptorSet::decode(fs::read(&path)?.as_slice())?;
    tonic_prost_build::configure()
        .build_server(false)
        .include_file("stubs.rs")
        .compile_fds(files)?;
    Ok(())
}
