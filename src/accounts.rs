//! What a user's name or number stands for in the texts of `/etc/passwd` and `/etc/group`.

/// The numbers that a process runs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The supplementary groups, the primary one among them.
    pub(crate) groups: Vec<u32>,
}

/// A user in one of the forms that [`Command::user`](crate::Command::user) takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserSpec<'a> {
    user: Id<'a>,
    group: Option<Id<'a>>,
}

/// What the texts lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown<'a> {
    User(&'a str),
    Group(&'a str),
}

/// A name; digits are a number, also if an account is called so.
#[derive(Clone, Copy, Debug)]
enum Id<'a> {
    Number(u32),
    Name(&'a str),
}

impl<'a> Id<'a> {
    fn parse(text: &'a str) -> Id<'a> {
        number(text).map_or(Id::Name(text), Id::Number)
    }
}

impl<'a> UserSpec<'a> {
    /// Any text is one; that it means nothing is found out by [`resolve`](Self::resolve).
    pub(crate) fn parse(text: &'a str) -> UserSpec<'a> {
        match text.split_once(':') {
            Some((user, group)) => UserSpec { user: Id::parse(user), group: Some(Id::parse(group)) },
            None => UserSpec { user: Id::parse(text), group: None },
        }
    }

    /// Whether [`resolve`](Self::resolve) looks at `/etc/passwd`.
    pub(crate) fn needs_passwd(&self) -> bool {
        self.group.is_none() || matches!(self.user, Id::Name(_))
    }

    /// Whether [`resolve`](Self::resolve) looks at `/etc/group`.
    #[cfg(feature = "container")]
    pub(crate) fn needs_group(&self) -> bool {
        !matches!(self.group, Some(Id::Number(_)))
    }

    /// The numbers by the rule of [`Command::user`](crate::Command::user). The supplementary groups
    /// are those that list the account, or with a group said, that one alone.
    pub(crate) fn resolve(&self, passwd: &str, group: &str) -> Result<Account, Unknown<'a>> {
        let entry = self.needs_passwd().then(|| find_user(passwd, self.user)).flatten();
        let uid = match (self.user, &entry) {
            (Id::Number(uid), _) => uid,
            (Id::Name(_), Some(entry)) => entry.uid,
            (Id::Name(name), None) => return Err(Unknown::User(name)),
        };
        let gid = match self.group {
            Some(Id::Number(gid)) => gid,
            Some(Id::Name(name)) => find_group(group, name).ok_or(Unknown::Group(name))?,
            None => match entry {
                Some(Entry { name, gid, .. }) => {
                    return Ok(Account { uid, gid, groups: groups_of(group, name, gid) });
                }
                None => uid,
            },
        };
        Ok(Account { uid, gid, groups: vec![gid] })
    }
}

/// A line of `/etc/passwd`.
struct Entry<'a> {
    name: &'a str,
    uid: u32,
    gid: u32,
}

/// The first account of a name or number. Lines that are no accounts are passed over.
fn find_user<'a>(passwd: &'a str, user: Id<'_>) -> Option<Entry<'a>> {
    let mut entries = passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, uid, gid) = (fields.next()?, fields.nth(1)?, fields.next()?);
        Some(Entry { name, uid: number(uid)?, gid: number(gid)? })
    });
    entries.find(|entry| match user {
        Id::Number(uid) => entry.uid == uid,
        Id::Name(name) => !name.is_empty() && entry.name == name,
    })
}

/// The home directory of the first account of a number.
#[cfg(feature = "container")]
pub(crate) fn home_of(passwd: &str, uid: u32) -> Option<&str> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':').skip(2);
        (number(fields.next()?)? == uid).then(|| fields.nth(2))?
    })
}

/// The name of the first account of a number.
#[cfg(feature = "container")]
pub(crate) fn name_of(passwd: &str, uid: u32) -> Option<&str> {
    find_user(passwd, Id::Number(uid)).map(|entry| entry.name)
}

fn find_group(group: &str, name: &str) -> Option<u32> {
    group.lines().find_map(|line| {
        let mut fields = line.split(':');
        (!name.is_empty() && fields.next()? == name).then(|| number(fields.nth(1)?))?
    })
}

/// The groups that list `name` as a member, after its primary one.
fn groups_of(group: &str, name: &str, primary: u32) -> Vec<u32> {
    let mut groups = vec![primary];
    for line in group.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        if let [_, _, gid, members] = fields[..]
            && let Some(gid) = number(gid)
            && members.split(',').any(|member| member == name)
            && !groups.contains(&gid)
        {
            groups.push(gid);
        }
    }
    groups
}

/// A user or group number. The highest one means "leave it as it is" to the kernel.
fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number != u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "broken\nroot:x:0:0:root:/root:/bin/sh\nweb:x:33:34::/var:/bin/false\n7:x:8:8::/:\n";
    const GROUP: &str = "root:x:0:\nweb:x:34:\nlogs:x:40:root,web\n";

    #[cfg(feature = "container")]
    #[test]
    fn a_home_and_a_name_are_found_by_number() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1001::/home/agent:/bin/sh\nbroken\n";
        assert_eq!(home_of(passwd, 1000), Some("/home/agent"));
        assert_eq!(home_of(passwd, 7), None);
        assert_eq!((name_of(passwd, 1000), name_of(passwd, 7)), (Some("agent"), None));
    }

    #[test]
    fn a_user_is_a_name_or_a_number_with_or_without_a_group() {
        let account = |uid, gid, groups: &[u32]| Ok(Account { uid, gid, groups: groups.to_vec() });
        for (user, expected) in [
            ("web", account(33, 34, &[34, 40])),
            ("33", account(33, 34, &[34, 40])),
            ("33:5", account(33, 5, &[5])),
            ("web:5", account(33, 5, &[5])),
            ("web:logs", account(33, 40, &[40])),
            ("9:logs", account(9, 40, &[40])),
            ("1234", account(1234, 1234, &[1234])),
            ("7", account(7, 7, &[7])),
            ("nobody", Err(Unknown::User("nobody"))),
            ("web:nobody", Err(Unknown::Group("nobody"))),
            ("1:2:3", Err(Unknown::Group("2:3"))),
            ("web:", Err(Unknown::Group(""))),
            (":5", Err(Unknown::User(""))),
            ("", Err(Unknown::User(""))),
            ("-1", Err(Unknown::User("-1"))),
            ("+1", Err(Unknown::User("+1"))),
            ("4294967295", Err(Unknown::User("4294967295"))),
        ] {
            assert_eq!(UserSpec::parse(user).resolve(PASSWD, GROUP), expected, "{user}");
        }
    }
}
