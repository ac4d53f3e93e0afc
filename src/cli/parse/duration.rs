//! Durations: `90s`, `2m`, `1h 30m`.

use std::time::Duration;

/// A time limit: a number with units, or seconds. No limit at all is said by leaving it out, so 0
/// is refused.
pub(crate) fn timeout(text: &str) -> Result<Duration, String> {
    let duration = match text.trim().parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => humantime::parse_duration(text).map_err(|_| {
            format!("`{text}` is not a duration: use seconds or units, such as 90s, 2m or 1h 30m")
        })?,
    };
    if duration.is_zero() {
        return Err("a limit of 0 would end everything before it starts; leave it out for none".to_owned());
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_seconds_and_units_are_understood() {
        for (text, millis) in
            [("90", 90_000), ("90s", 90_000), ("2m", 120_000), ("1h 30m", 5_400_000), ("250ms", 250)]
        {
            assert_eq!(timeout(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn nothing_negative_zero_or_endless() {
        for text in ["", "0", "0s", "-1", "soon", "1.5.2"] {
            assert!(timeout(text).is_err(), "{text:?}");
        }
    }
}
