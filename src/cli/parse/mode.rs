//! Permission bits: `644`, `0755`.

/// Permission bits in octal.
pub(crate) fn mode(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("0o").unwrap_or(text);
    match u32::from_str_radix(digits, 8) {
        Ok(mode) if mode <= 0o7777 && !digits.starts_with('+') => Ok(mode),
        _ => Err(format!("`{text}` is not a file mode: use octal digits, such as 644 or 0755")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_octal() {
        for (text, bits) in [("644", 0o644), ("0755", 0o755), ("0o600", 0o600), ("4755", 0o4755), ("0", 0)] {
            assert_eq!(mode(text), Ok(bits));
        }
        for text in ["", "u+x", "9", "10000", "-1", "+644"] {
            assert!(mode(text).is_err(), "{text:?}");
        }
    }
}
