//! Environment variables: `NAME=VALUE`, or `NAME` alone.

use std::env::VarError;

use agentworkspace::Environment;

use crate::cli::failure::Usage;

/// The variables that `--env` options stand for. `NAME` alone takes its value from this process,
/// so that a secret need not be in an argument list. No error shows a value.
pub(crate) fn environment(
    options: &[String],
    own: impl Fn(&str) -> Result<String, VarError>,
) -> Result<Environment, Usage> {
    let mut environment = Environment::empty();
    for option in options {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, value.to_owned()),
            None => {
                let value = own(option).map_err(|error| match error {
                    VarError::NotPresent => {
                        Usage(format!("--env {option}: `{option}` is not set here; write {option}=VALUE"))
                    }
                    VarError::NotUnicode(_) => {
                        Usage(format!("--env {option}: the value of `{option}` is not UTF-8"))
                    }
                })?;
                (option.as_str(), value)
            }
        };
        if name.is_empty() {
            return Err(Usage("--env: the name of a variable is empty".to_owned()));
        }
        environment.insert(name, value);
    }
    Ok(environment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(options: &[&str]) -> Result<Environment, Usage> {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        environment(&options, |name| match name {
            "TOKEN" => Ok("hunter2".to_owned()),
            _ => Err(VarError::NotPresent),
        })
    }

    #[test]
    fn a_name_alone_takes_the_value_from_here() {
        let environment = parse(&["A=1", "TOKEN", "B=x=y", "A=", "C= "]).unwrap();
        let variables: Vec<_> = environment.iter().collect();
        assert_eq!(variables, [("TOKEN", "hunter2"), ("B", "x=y"), ("A", ""), ("C", " ")]);
    }

    #[test]
    fn a_missing_or_empty_name_is_refused_without_the_value() {
        assert!(parse(&["MISSING"]).unwrap_err().0.contains("`MISSING` is not set"));
        assert!(!parse(&["=hunter2"]).unwrap_err().0.contains("hunter2"));
    }
}
