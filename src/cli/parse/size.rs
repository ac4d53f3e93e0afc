//! Sizes: `512m`, `1.5g`, `4096`.

/// Bytes from a number with an optional unit, which counts in powers of 1024 as the engine's own
/// commands do: `512m`, `512MiB` and `512mb` are the same.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let malformed = || format!("`{text}` is not a size: use bytes or a unit, such as 512m or 1.5g");
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let shift = match unit.trim() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(malformed()),
    };
    let factor = 1u64 << shift;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(|| format!("`{text}` is more than any machine has"));
    }
    let bytes = number.parse::<f64>().map_err(|_| malformed())? * factor as f64;
    // 2^63 as a float: above it the conversion would no longer be exact or would saturate.
    if bytes >= 9_223_372_036_854_775_808.0 {
        return Err(format!("`{text}` is more than any machine has"));
    }
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("1k", 1024),
            ("512m", 512 << 20),
            ("512MiB", 512 << 20),
            ("512 mb", 512 << 20),
            ("1.5g", 3 << 29),
            ("2t", 2 << 40),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "m", "-1", "1x", "1..5g", "1e3", "99999999999t", "nan", "0x10"] {
            assert!(size(text).is_err(), "{text:?}");
        }
    }
}
