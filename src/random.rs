//! Random numbers for names and secrets.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// 64 bits that nobody can guess. The standard library keys its hashers from the system's random
/// numbers, and the hash of nothing under an unknown key is as good as random.
pub(crate) fn random_u64() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// 128 such bits as 32 hexadecimal digits.
pub(crate) fn random_hex() -> String {
    format!("{:016x}{:016x}", random_u64(), random_u64())
}
