//! Control groups that limit what programs may use.

/// What a group may use at most, as the files of both versions of control groups have it: a file's name, and what it says.
#[derive(Clone, Copy, Debug)]
pub struct Limit<'a> {
    /// The controller, by its name in version 1.
    pub controller: &'a str,
    /// The file of version 1.
    pub older: (&'a str, &'a str),
    /// The file of version 2.
    pub newer: (&'a str, &'a str),
}

/// The exit status of the script where no group can be made.
pub const NO_GROUPS: i32 = 77;

impl Limit<'_> {
    /// A shell script that runs `"$@"` in a group with this limit.
    #[must_use]
    pub fn script(&self) -> String {
        let Self { controller, older: (older, old), newer: (newer, new) } = self;
        format!(
            "own=$(sed -n 's/^[0-9]*:{controller}://p' /proc/self/cgroup); all=/sys/fs/cgroup/{controller}$own; \
             limit={older} value='{old}'; \
             [ -w $all/$limit ] || {{ all=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup); limit={newer} value='{new}'; }}; \
             group=$all/chase-$$; mkdir $group && echo \"$value\" >$group/$limit && echo $$ >$group/cgroup.procs \
             || {{ rmdir $group; echo no groups; exit {NO_GROUPS}; }}; \
             \"$@\"; status=$?; echo $$ >$all/cgroup.procs; rmdir $group; exit $status"
        )
    }
}
